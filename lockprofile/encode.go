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

// The numbers of the fields of a profile.proto, the format of go tool pprof.
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

// message is a message of protocol buffers in the making.
type message []byte

func (m *message) number(field int, v int64) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3), uint64(v))
}

func (m *message) bytes(field int, b []byte) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3|2), uint64(len(b)))
	*m = append(*m, b...)
}

// encoder writes samples as a profile.
type encoder struct {
	out       message
	texts     map[string]int64
	functions map[string]int64
	lines     map[line]int64
}

// line is one place in a program.
type line struct {
	function, file string
	number         int
}

// valueType is what a value of each sample is.
type valueType struct{ name, unit string }

// newEncoder begins a profile whose samples have values of these types, of which main is
// shown if nobody asks for another.
func newEncoder(types []valueType, main string) *encoder {
	e := &encoder{texts: map[string]int64{}, functions: map[string]int64{}, lines: map[line]int64{}}
	e.text("") // as the format demands
	for _, t := range types {
		var m message
		m.number(typeName, e.text(t.name))
		m.number(typeUnit, e.text(t.unit))
		e.out.bytes(profileSampleType, m)
	}
	e.out.number(profileDefaultType, e.text(main))
	e.out.number(profileTime, time.Now().UnixNano())
	var m message
	for _, field := range []int{mappingID, mappingFunctions, mappingFiles, mappingLines} { // nothing is left to look up
		m.number(field, 1)
	}
	e.out.bytes(profileMapping, m)
	return e
}

// text returns the number of a text.
func (e *encoder) text(s string) int64 {
	id, ok := e.texts[s]
	if !ok {
		id = int64(len(e.texts))
		e.texts[s] = id
		e.out.bytes(profileStrings, []byte(s))
	}
	return id
}

// sample adds what was measured in a place.
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

// library begins the names of the functions between a caller and its observer.
const library = "github.com/zklock-go/zklock."

// placesOf returns the places of a stack from the method that was called, such as Lock,
// outwards.
func placesOf(stack []uintptr) []line {
	var all []line
	frames := runtime.CallersFrames(stack)
	for more := len(stack) > 0; more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.Function != "" {
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

// place returns the number of a place.
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

// function returns the number of the function that a place is in.
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

// writeTo writes the profile as go tool pprof reads it.
func (e *encoder) writeTo(w io.Writer) error {
	z := gzip.NewWriter(w)
	if _, err := z.Write(e.out); err != nil {
		return err
	}
	return z.Close()
}
