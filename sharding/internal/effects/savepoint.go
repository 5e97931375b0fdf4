// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"regexp"
	"strings"
)

// Savepoint is the operation of a statement on a savepoint, or setting.
type Savepoint uint8

// The operations.
const (
	NoSavepoint Savepoint = iota
	Set
	RollbackTo
	Release
	SetLocal // SET of something that ends with a transaction of PostgreSQL
)

// Parts of statements on savepoints: what may stand between words, which are spaces and comments, and names.
const (
	spaceOrComment = `(?:\s|/\*(?:[^*]|\*+[^*/])*\*+/|(?:--|#)[^\n]*(?:\n|$))`
	savepointName  = "([^\\s;\"'`\\[/#-]+|\"[^\"]+\"|'[^']+'|`[^`]+`|\\[[^\\]]+\\])"
)

var aboutSavepoint = regexp.MustCompile(strings.NewReplacer("_", spaceOrComment, "NAME", savepointName).Replace(
	`(?i)^_*(?:(savepoint)|(release)(?:_+savepoint)?|rollback(?:_+(?:work|transaction))?_+to(?:_+savepoint)?)_+NAME(?:;|_)*$`))

// SavepointOf returns the operation of a statement, and the name of its savepoint.
func SavepointOf(text string) (Savepoint, string) {
	if !MayBeSavepoint(text) {
		return NoSavepoint, ""
	}
	m := aboutSavepoint.FindStringSubmatch(text)
	if m == nil {
		return NoSavepoint, ""
	}
	verb := RollbackTo
	switch {
	case m[1] != "":
		verb = Set
	case m[2] != "":
		verb = Release
	}
	return verb, strings.ToLower(strings.Trim(m[3], "`\"[]'"))
}

// setsLocal matches the beginning of a SET that ends with a transaction of PostgreSQL.
var setsLocal = regexp.MustCompile(strings.ReplaceAll(`(?i)^_*set_+(?:local|constraints|transaction)_`, "_", spaceOrComment))

// SetsLocal reports whether a text sets something that ends with a transaction of PostgreSQL, and nothing else.
func SetsLocal(text string) bool {
	text = strings.TrimRight(text, "; \t\r\n")
	return setsLocal.MatchString(text) && !strings.Contains(text, ";") && !decides(text)
}

// MayBeSavepoint is a fast check, which nearly all other statements do not pass.
func MayBeSavepoint(text string) bool {
	const least, most = len("RELEASE a"), 1000
	if len(text) < least || len(text) > most {
		return false
	}
	switch text[0] {
	case 's', 'S':
		return text[1] == 'a' || text[1] == 'A' || text[2] == 't' || text[2] == 'T'
	case 'r', 'R':
		return true
	}
	return strings.IndexByte("/-#\t\n\v\f\r ", text[0]) >= 0
}
