// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/zklock-go/zklock"
	zkleader "github.com/zklock-go/zklock/adapters/leaderelection"
	"github.com/zklock-go/zklock/zktest"
)

var (
	_ manager.Runnable               = (*zkleader.Runnable)(nil)
	_ manager.LeaderElectionRunnable = (*zkleader.Runnable)(nil)
)

// open connects to a server of its own. In production: to your ensemble.
func open() (client *zklock.Client, done func()) {
	server, err := zktest.New(zktest.Options{})
	if err != nil {
		panic(err)
	}
	client, err = zklock.Connect(context.Background(), server.Addrs(), &zklock.Options{Dialer: server.Dial})
	if err != nil {
		panic(err)
	}
	return client, func() {
		client.Close()
		server.Close()
	}
}

// Reconcilers run in the leader alone.
func ExampleLock_Run() {
	client, done := open()
	defer done()

	lock := zkleader.NewLock(client, "/leaders/controller", "pod-1")
	config := &rest.Config{Host: "http://127.0.0.1:1"} // in production: ctrl.GetConfigOrDie()
	mgr, err := manager.New(config, manager.Options{
		LeaderElection: true, LeaderElectionResourceLockInterface: lock,
		Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // in production: ctrl.SetupSignalHandler()
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		fmt.Println("leading:", lock.Hold().Token() > 0)
		stop()
		<-ctx.Done()
		return nil
	}))
	if err != nil {
		panic(err)
	}
	fmt.Println("stopped:", lock.Run(ctx, mgr.Start))
	// Output:
	// leading: true
	// stopped: <nil>
}

// A manager runs in every process, and one of its workers in one of them.
func ExampleRunnable() {
	client, done := open()
	defer done()

	config := &rest.Config{Host: "http://127.0.0.1:1"} // in production: ctrl.GetConfigOrDie()
	mgr, err := manager.New(config, manager.Options{Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // in production: ctrl.SetupSignalHandler()
	err = mgr.Add(&zkleader.Runnable{
		Election: client.Election("/leaders/billing"),
		Value:    []byte("pod-1"),
		Work: func(ctx context.Context) error {
			fmt.Println("leading, fenced by a token:", zklock.HoldAt(ctx, "/leaders/billing").Token() > 0)
			stop()
			<-ctx.Done()
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("stopped:", mgr.Start(ctx))
	// Output:
	// leading, fenced by a token: true
	// stopped: <nil>
}

// A Lock can be used wherever client-go accepts a lock.
func ExampleLock() {
	client, done := open()
	defer done()

	lock := zkleader.NewLock(client, "/leaders/controller", "pod-1")
	ctx, stop := lock.Context(context.Background()) // done before anyone else leads
	defer stop()
	worked := make(chan struct{})
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer close(worked)
				fmt.Println("leading:", lock.Identity())
				stop() // in production: work until ctx is done
			},
			OnStoppedLeading: func() { fmt.Println("stopped") },
		},
	})
	if lock.Hold() != nil { // otherwise it never led, and there is no work to wait for
		<-worked
	}
	fmt.Println("released:", lock.Release(context.Background()))
	// Output:
	// leading: pod-1
	// stopped
	// released: <nil>
}
