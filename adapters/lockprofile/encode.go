// SPDX-License-Identifier: Apache-2.0

package lockprofile

import (
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// encoder makes a profile of samples.
type encoder struct {
	out       *profile.Profile
	functions map[string]*profile.Function
	lines     map[line]*profile.Location
}

// line is a place in a program.
type line struct {
	function, file string
	number         int
}

// newEncoder starts a profile whose samples have values of the given types. Tools show the value
// main by default.
func newEncoder(types []*profile.ValueType, main string) *encoder {
	// Everything is already symbolized.
	mapping := &profile.Mapping{ID: 1, HasFunctions: true, HasFilenames: true, HasLineNumbers: true}
	return &encoder{
		out: &profile.Profile{
			SampleType: types, DefaultSampleType: main, TimeNanos: time.Now().UnixNano(), Mapping: []*profile.Mapping{mapping},
		},
		functions: map[string]*profile.Function{}, lines: map[line]*profile.Location{},
	}
}

// sample adds the values measured at a place.
func (e *encoder) sample(stack []uintptr, path string, values ...int64) {
	s := &profile.Sample{Value: values, Label: map[string][]string{"path": {path}}}
	for _, l := range placesOf(stack) {
		s.Location = append(s.Location, e.place(l))
	}
	e.out.Sample = append(e.out.Sample, s)
}

// library is the prefix of the names of the functions between a caller and its observer.
const library = "github.com/zklock-go/zklock."

// placesOf returns the places of a stack, from the method that was called, such as Lock, outwards.
func placesOf(stack []uintptr) []line {
	var all []line
	frames := runtime.CallersFrames(stack)
	for more := len(stack) > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if f.Function != "" {
			all = append(all, line{f.Function, f.File, f.Line})
		}
	}
	i := slices.IndexFunc(all, line.isLibrary)
	for i >= 0 && i+1 < len(all) && all[i+1].isLibrary() {
		i++
	}
	return all[max(0, i):]
}

func (l line) isLibrary() bool { return strings.HasPrefix(l.function, library) }

// place returns a place's location.
func (e *encoder) place(l line) *profile.Location {
	at := e.lines[l]
	if at == nil {
		at = &profile.Location{
			ID: uint64(len(e.lines) + 1), Mapping: e.out.Mapping[0], Line: []profile.Line{{Function: e.function(l), Line: int64(l.number)}},
		}
		e.lines[l] = at
		e.out.Location = append(e.out.Location, at)
	}
	return at
}

// function returns the function that contains a place.
func (e *encoder) function(l line) *profile.Function {
	f := e.functions[l.function]
	if f == nil {
		f = &profile.Function{ID: uint64(len(e.functions) + 1), Name: l.function, SystemName: l.function, Filename: l.file}
		e.functions[l.function] = f
		e.out.Function = append(e.out.Function, f)
	}
	return f
}
