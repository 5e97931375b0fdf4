// SPDX-License-Identifier: Apache-2.0

package sqltext

import "strings"

// reserved are the words that neither MySQL nor SQLite accepts as a name unless it is quoted or
// after a dot.
var reserved = wordSet(`add all alter and as between case check collate constraint create default delete
	distinct drop else exists foreign from group having in index insert into is join limit not null on or
	order primary references select set table then to union unique update using values when where`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// Reserved reports whether a word, in any case, cannot be a name if it is not quoted and not after
// a dot.
func Reserved(word string) bool { return reserved[strings.ToLower(word)] }
