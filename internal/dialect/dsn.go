// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"regexp"
	"strings"
)

const redacted = "***"

var (
	// Only known schemes count: in "app://x@tcp(h)/db" the user is app, and
	// the password starts with two slashes.
	urlScheme  = regexp.MustCompile(`^(?i:mysql|mariadb|postgres(?:ql)?|sqlite3?|file)://`)
	fileScheme = regexp.MustCompile(`^(?:(?i:sqlite3?|file):|:memory:)`)

	// The setting's name may hold the word anywhere ("_auth_pass", "sslkey");
	// SQLCipher's pragmas look like calls: key('…'), hexkey('…').
	secretSetting = regexp.MustCompile(`(?i)[\w.-]*(?:pass|pwd|secret|token|key|auth|cred|salt)[\w.-]*\s*(?:=|\(|%28|%3d)`)
)

// RedactDSN returns dsn without its password and without the values of
// settings that may be secret, so that it can be shown. It knows
// "scheme://user:password@host/db?name=value", go-sql-driver's
// "user:password@tcp(host:port)/db?name=value", PostgreSQL's "host=… user=…
// password=…", and SQLite's paths and "file:" names.
//
// Where a text can be read in two ways it hides too much rather than too
// little: a password with @, :, / or ? in it does not show, nor does one in a
// DSN that forgot its "@host", and nothing shows from the first secret setting
// on.
func RedactDSN(dsn string) string {
	at := strings.LastIndex(dsn, "@")
	if at < 0 {
		return redactWithoutUser(dsn)
	}
	scheme := ""
	if !strings.Contains(dsn[at:], "(") { // net(address) is no part of a URL
		scheme = urlScheme.FindString(dsn)
	}
	secret := secretStart(dsn)
	shown := scheme + userName(dsn[len(scheme):at], scheme != "")
	if secret <= at {
		// The setting may be a piece of the password, or the @ of the setting.
		return shown[:min(len(shown), secret)] + redacted
	}
	if !strings.HasSuffix(shown, ":") && shown != scheme {
		return hideFrom(dsn, secret) // a user without a password
	}
	return shown + redacted + hideFrom(dsn, secret)[at:]
}

// userName returns what may be shown of "user:password": "user:". Without a
// colon it is all user, but in a URL it may be the password of a user called
// like the scheme, and nothing of it is shown.
func userName(userinfo string, inURL bool) string {
	if colon := strings.Index(userinfo, ":"); colon >= 0 {
		return userinfo[:colon+1]
	}
	if inURL {
		return ""
	}
	return userinfo
}

// redactWithoutUser handles a DSN without @: a file, a host, or a user and
// password whose host was forgotten.
func redactWithoutUser(dsn string) string {
	secret := secretStart(dsn)
	if fileScheme.MatchString(dsn) {
		return hideFrom(dsn, secret)
	}
	scheme := len(urlScheme.FindString(dsn))
	if colon := strings.Index(dsn[scheme:], ":"); colon >= 0 {
		secret = min(secret, scheme+colon+1)
	}
	return hideFrom(dsn, secret)
}

// secretStart returns where the value of the first secret setting starts, or
// the end of dsn.
func secretStart(dsn string) int {
	if found := secretSetting.FindStringIndex(dsn); found != nil {
		return found[1]
	}
	return len(dsn)
}

func hideFrom(dsn string, start int) string {
	if start == len(dsn) {
		return dsn
	}
	return dsn[:start] + redacted
}
