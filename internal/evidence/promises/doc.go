// SPDX-License-Identifier: Apache-2.0

// Package promises tests the library's promises, in virtual time and only through its exported names. A file's name begins with
// the promise of docs/promises.md that most of its tests check, so the directory is an index of the promises. The doc comment
// of each test names its promises in a //zklock:promise directive: see make promises.
package promises
