// SPDX-License-Identifier: Apache-2.0

package sqltext

// Flavor is a set of lexical rules of SQL text.
type Flavor uint16

// The two rules that a server's sql_mode switches. Clear them for the other rules: MySQL &^
// BackslashEscapes is NO_BACKSLASH_ESCAPES, and MySQL &^ DoubleQuoteStrings is ANSI_QUOTES.
const (
	BackslashEscapes   Flavor = 1 << iota // a backslash in a string escapes the next byte
	DoubleQuoteStrings                    // "…" is a string; otherwise it is an identifier
	hashComments                          // # starts a comment
	dashNeedsSpace                        // -- starts a comment only before white space or the end
	versionComments                       // the body of /*! … */ and /*M! … */ is code
	backticks                             // `…` is an identifier
	brackets                              // […] is an identifier
	atNames                               // @name and @@name are one word
	dollarQuotes                          // $tag$ … $tag$ is a string, $1 a parameter
	escapeStrings                         // E'…' has backslash escapes
	nestedComments                        // /* /* */ */ is one comment
	returnEndsLine                        // a lone \r ends a -- comment
)

// The families of servers.
const (
	// MySQL has the rules of MySQL and MariaDB with their default sql_mode.
	MySQL = BackslashEscapes | DoubleQuoteStrings | hashComments | dashNeedsSpace | versionComments | backticks | atNames
	// SQLite has the rules of SQLite, which accepts the identifier quotes of MySQL and SQL Server
	// as well as those of the standard.
	SQLite = backticks | brackets | atNames
	// PostgreSQL has the rules of PostgreSQL with standard_conforming_strings on.
	PostgreSQL = dollarQuotes | escapeStrings | nestedComments | returnEndsLine
)

func (f Flavor) has(rule Flavor) bool { return f&rule != 0 }
