// SPDX-License-Identifier: Apache-2.0

package lockprofile

import (
	"compress/gzip"
	"encoding/binary"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The field numbers of profile.proto, the format of go tool pprof.
const (
	profileSampleType  = 1
	profileSample      = 2
	profileMapping     = 3
	profileLocation    = 4
	profileFunction    = 5
	profileStrings     = 6
	profileTime        = 9
	profileDefaultType = 14

	typeName, typeUnit                               = 1, 2
	sampleLocation, sampleValue, sampleLabel         = 1, 2, 3
	labelKey, labelText                              = 1, 2
	mappingID, mappingFunctions                      = 1, 7
	mappingFiles, mappingLines                       = 8, 9
	locationID, locationMapping, locationLine        = 1, 2, 4
	lineFunction, lineNumber                         = 1, 2
	functionID, functionName, functionSystem, inFile = 1, 2, 3, 4
)

// message is a protocol buffer message under construction.
type message []byte

func (m *message) number(field int, v int64) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3), uint64(v))
}

func (m *message) bytes(field int, b []byte) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3|2), uint64(len(b)))
	*m = append(*m, b...)
}

// encoder encodes samples as a profile.
type encoder struct {
	out       message
	texts     map[string]int64
	functions map[string]int64
	lines     map[line]int64
}

// line is a place in a program.
type line struct {
	function, file string
	number         int
}

// valueType describes one value of each sample.
type valueType struct{ name, unit string }

// newEncoder starts a profile whose samples have values of the given types. Tools show the value
// main by default.
func newEncoder(types []valueType, main string) *encoder {
	e := &encoder{texts: map[string]int64{}, functions: map[string]int64{}, lines: map[line]int64{}}
	e.text("") // the format requires it to be the first string
	for _, t := range types {
		var m message
		m.number(typeName, e.text(t.name))
		m.number(typeUnit, e.text(t.unit))
		e.out.bytes(profileSampleType, m)
	}
	e.out.number(profileDefaultType, e.text(main))
	e.out.number(profileTime, time.Now().UnixNano())
	var m message
	for _, field := range []int{mappingID, mappingFunctions, mappingFiles, mappingLines} { // everything is already symbolized
		m.number(field, 1)
	}
	e.out.bytes(profileMapping, m)
	return e
}

// text returns the index of a string in the string table.
func (e *encoder) text(s string) int64 {
	id, ok := e.texts[s]
	if !ok {
		id = int64(len(e.texts))
		e.texts[s] = id
		e.out.bytes(profileStrings, []byte(s))
	}
	return id
}

// sample adds the values measured at a place.
func (e *encoder) sample(stack []uintptr, path string, values ...int64) {
	var m, label message
	for _, l := range placesOf(stack) {
		m.number(sampleLocation, e.place(l))
	}
	for _, v := range values {
		m.number(sampleValue, v)
	}
	label.number(labelKey, e.text("path"))
	label.number(labelText, e.text(path))
	m.bytes(sampleLabel, label)
	e.out.bytes(profileSample, m)
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

// place returns the id of a place.
func (e *encoder) place(l line) int64 {
	id, ok := e.lines[l]
	if !ok {
		id = int64(len(e.lines) + 1)
		e.lines[l] = id
		var m, at message
		at.number(lineFunction, e.function(l))
		at.number(lineNumber, int64(l.number))
		m.number(locationID, id)
		m.number(locationMapping, 1)
		m.bytes(locationLine, at)
		e.out.bytes(profileLocation, m)
	}
	return id
}

// function returns the id of the function that contains a place.
func (e *encoder) function(l line) int64 {
	id, ok := e.functions[l.function]
	if !ok {
		id = int64(len(e.functions) + 1)
		e.functions[l.function] = id
		var m message
		m.number(functionID, id)
		m.number(functionName, e.text(l.function))
		m.number(functionSystem, e.text(l.function))
		m.number(inFile, e.text(l.file))
		e.out.bytes(profileFunction, m)
	}
	return id
}

// writeTo writes the profile in the format of go tool pprof.
func (e *encoder) writeTo(w io.Writer) error {
	z := gzip.NewWriter(w)
	if _, err := z.Write(e.out); err != nil {
		return err
	}
	return z.Close()
}
