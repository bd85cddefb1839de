package zktest

import "slices"

// Intercept shows every request to fn before it is processed, in the goroutine
// of its connection and with no lock held. Every interceptor sees every
// request; the first verdict that is not Pass counts. The request belongs to fn
// only during the call.
func (s *Server) Intercept(fn func(*Request) Verdict) (remove func()) {
	in := &interceptor{fn}
	s.editInterceptors(func(list []*interceptor) []*interceptor { return append(list, in) })
	return func() {
		s.editInterceptors(func(list []*interceptor) []*interceptor {
			return slices.DeleteFunc(list, func(other *interceptor) bool { return other == in })
		})
	}
}

func (s *Server) editInterceptors(edit func([]*interceptor) []*interceptor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*interceptor
	if old := s.interceptors.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = edit(list)
	s.interceptors.Store(&list)
}

// OnTxn calls fn for each transaction at the moment the leader applies it, in
// the order of their zxids. fn runs under the server's lock: it must be quick
// and must not call the server.
func (s *Server) OnTxn(fn func(Txn)) (remove func()) {
	h := &txnHook{fn}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.txnHooks = append(slices.Clone(s.txnHooks), h)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.txnHooks = slices.DeleteFunc(slices.Clone(s.txnHooks), func(other *txnHook) bool { return other == h })
	}
}
