// SPDX-License-Identifier: Apache-2.0

package sqltext

// Flavor is one reading of SQL text: a set of lexical rules.
type Flavor uint16

// The two rules that a server's sql_mode switches. Clear them to get the other
// reading: MySQL &^ BackslashEscapes is NO_BACKSLASH_ESCAPES, and
// MySQL &^ DoubleQuoteStrings is ANSI_QUOTES.
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
	// MySQL reads as MySQL and MariaDB do with their default sql_mode.
	MySQL = BackslashEscapes | DoubleQuoteStrings | hashComments | dashNeedsSpace | versionComments | backticks | atNames
	// SQLite reads as SQLite does, which takes MySQL's and SQL Server's
	// identifier quotes as well as the standard's.
	SQLite = backticks | brackets | atNames
	// PostgreSQL reads as PostgreSQL does with standard_conforming_strings on.
	PostgreSQL = dollarQuotes | escapeStrings | nestedComments | returnEndsLine
)

func (f Flavor) has(rule Flavor) bool { return f&rule != 0 }
