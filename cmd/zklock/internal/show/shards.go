// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/zklock-go/zklock/operate"
)

// Shards writes a fleet of package shards with a single Write.
func (v View) Shards(f *operate.Shards) error {
	if v.JSON {
		return JSON(v.Out, newShardsJSON(f), v.Pretty)
	}
	var b bytes.Buffer
	v.shards(&b, f, time.Now())
	_, err := v.Out.Write(b.Bytes())
	return err
}

func (v View) shards(w io.Writer, f *operate.Shards, now time.Time) {
	free := ""
	if len(f.Free) > 0 {
		free = ", free: " + Ranges(f.Free)
	}
	fmt.Fprintf(w, "%s  %s: %s, %d of %s held, %d waiting%s\n",
		now.Format(time.TimeOnly), Text(f.Path), Count(len(f.Members), "member", "members"), f.Number-len(f.Free), Count(f.Number, "shard", "shards"), f.Waiting, free)
	t := grid{head: []string{"MEMBER", "AGE", "WEIGHT", "SHARDS", "HOLDS"}, cut: "HOLDS", drop: []string{"WEIGHT", "AGE"}, columns: v.Columns}
	if v.Wide {
		t.columns = 0
	}
	for _, m := range f.Members {
		t.rows = append(t.rows, []string{Owner(m.Contender), ago(now, m.Since), fmt.Sprint(m.Weight), fmt.Sprint(len(m.Held)), Ranges(m.Held)})
	}
	t.print(w)
}

// Ranges returns sorted numbers as text: 0-3, 7.
func Ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		part := fmt.Sprint(numbers[i])
		if end > i {
			part += fmt.Sprintf("-%d", numbers[end])
		}
		parts, i = append(parts, part), end+1
	}
	return strings.Join(parts, ", ")
}

// ShardsJSON is the output of ls --json for a fleet of package shards. The field names are part of the command's contract.
type ShardsJSON struct {
	Path    string            `json:"path"`
	Shards  int               `json:"shards"` // their number
	Free    []int             `json:"free"`   // those that no member holds
	Waiting int               `json:"waiting"`
	Members []shardMemberJSON `json:"members"`
}

type shardMemberJSON struct {
	contenderJSON
	Weight int   `json:"weight"`
	Held   []int `json:"held"`
}

func newShardsJSON(f *operate.Shards) ShardsJSON {
	out := ShardsJSON{Path: f.Path, Shards: f.Number, Free: append([]int{}, f.Free...), Waiting: f.Waiting, Members: []shardMemberJSON{}}
	for _, m := range f.Members {
		out.Members = append(out.Members, shardMemberJSON{newContenderJSON(m.Contender), m.Weight, append([]int{}, m.Held...)})
	}
	return out
}
