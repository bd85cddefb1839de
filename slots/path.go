// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/zklock-go/zklock/internal/node"
)

// Path returns the path below dir for the lock of a job with that name. The name may be any text
// except the empty one: Path escapes the characters and suffixes that a lock's path may not contain.
// Different names have different paths.
func Path(dir, name string) string { return dir + "/" + element(name) }

// numbered matches names that can be taken for a contender's node, whose number ends its name.
var numbered = regexp.MustCompile(`[-0-9][0-9]{9}$`)

// element escapes a name for use as the last element of a lock's path.
func element(name string) string {
	name = url.PathEscape(name)
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	if i := strings.LastIndexByte(name, '.'); i >= 0 && node.IsReserved(name) {
		return name[:i] + "%2E" + name[i+1:]
	}
	if last := len(name) - 1; numbered.MatchString(name) {
		return fmt.Sprintf("%s%%%X", name[:last], name[last])
	}
	return name
}
