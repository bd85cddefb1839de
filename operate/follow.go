// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"container/list"
	"context"
	"strings"
)

// A followed directory is in one of two classes. Each has its own limit, because a ZooKeeper that
// others use too may have a million nodes without children.
type class int

const (
	inUse class = iota // it has had children since it was found
	empty              // it has had none: it may be the directory of a lock, or a leaf of something else
	classes
)

// limits are how many directories of each class one Watch follows. Each costs a goroutine and a
// watch.
type limits [classes]int

var usual = limits{inUse: 10_000, empty: 1_000}

// fate says whether a directory is shown, and if not, why.
type fate int

const (
	fateShown      fate = iota // or was just found
	fateUnreadable             // the client may not read it
	fateUnwatched              // there was no room for it
)

// dir is a directory that a Watch has found.
type dir struct {
	path  string
	top   string // the child of the watched path that contains it
	class class
	fate  fate
	end   context.CancelFunc  // ends its goroutine; nil if it is not followed
	place *list.Element       // its place in followed; nil if it is not followed, or is the watched path itself
	aside map[string]struct{} // the paths of its children that are not followed

	listed bool // its children have been seen
	round  int  // in which it was last looked at while it was not followed
}

// directories are the directories that a Watch has found. It is not safe for concurrent use.
type directories struct {
	base     string // the watched path, as a prefix
	most     limits
	all      map[string]*dir
	followed [classes]map[string]*list.List // by top; in the order in which they were first followed
	n        limits                         // the number of followed directories, without the watched path
	gaps     Incomplete
	rounds   int // of sweeps
}

func newDirectories(base string, most limits) *directories {
	d := &directories{base: base, most: most, all: map[string]*dir{}}
	for c := range d.followed {
		d.followed[c] = map[string]*list.List{}
	}
	return d
}

// find returns the directory at a path, and adds it if it is new.
func (d *directories) find(path string) *dir {
	known := d.all[path]
	if known == nil {
		top, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, d.base), "/"), "/")
		known = &dir{path: path, top: top, class: empty, aside: map[string]struct{}{}}
		d.all[path] = known
	}
	return known
}

// insert adds a directory to the followed ones. The watched path itself needs no place.
func (d *directories) insert(of *dir, c class) {
	d.remove(of)
	d.class(of, c)
	if of.path == d.base {
		return
	}
	if d.followed[c][of.top] == nil {
		d.followed[c][of.top] = list.New()
	}
	of.place = d.followed[c][of.top].PushBack(of)
	d.n[c]++
	if parent := d.parent(of); parent != nil {
		delete(parent.aside, of.path)
	}
}

// remove stops following a directory.
func (d *directories) remove(of *dir) {
	if of.place != nil {
		d.followed[of.class][of.top].Remove(of.place)
		d.n[of.class]--
		of.place = nil
	}
	if parent := d.parent(of); parent != nil {
		parent.aside[of.path] = struct{}{}
	}
}

// parent returns the directory that contains another one, or nil if it is not known.
func (d *directories) parent(of *dir) *dir {
	if of.path == d.base {
		return nil
	}
	return d.all[of.path[:strings.LastIndexByte(of.path, '/')]]
}

// mark changes a directory's fate.
func (d *directories) mark(of *dir, f fate) {
	d.count(of, -1)
	of.fate = f
	d.count(of, +1)
}

func (d *directories) class(of *dir, c class) {
	d.count(of, -1)
	of.class = c
	d.count(of, +1)
}

// count adds more to the number of directories with the fate of one of them.
func (d *directories) count(of *dir, more int) {
	switch {
	case of.fate == fateUnreadable:
		d.gaps.Unreadable += more
	case of.fate == fateUnwatched && of.class == inUse:
		d.gaps.Unwatched += more
	case of.fate == fateUnwatched:
		d.gaps.Empty += more
	}
}

// forget removes a directory that is gone.
func (d *directories) forget(of *dir) {
	d.remove(of)
	d.mark(of, fateShown)
	if parent := d.parent(of); parent != nil {
		delete(parent.aside, of.path)
	}
	delete(d.all, of.path)
}

// room reports whether one more directory of a class below top can be followed. If it takes the
// place of another one, room returns that.
//
// Each top has an equal share of a class. One that has less than its share gets the place of a
// directory of the top that has most: otherwise a client that creates many directories would hide the
// locks of all others. An empty directory that is new gets the place of the one that has been empty
// for longest, because the directory of a lock is empty for a moment when it is new.
func (d *directories) room(c class, top string, isNew bool) (ok bool, instead *dir) {
	if d.n[c] < d.most[c] {
		return true, nil
	}
	own, others, largest := 0, 0, (*list.List)(nil)
	for t, l := range d.followed[c] {
		switch {
		case t == top:
			own = l.Len()
		case l.Len() > 0:
			others++
			if largest == nil || l.Len() > largest.Len() {
				largest = l
			}
		}
	}
	switch {
	case largest != nil && own < d.most[c]/(others+1):
		return true, largest.Back().Value.(*dir)
	case isNew && c == empty && own > 0:
		return true, d.followed[c][top].Front().Value.(*dir)
	}
	return false, nil
}
