// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"regexp"
	"strings"
)

const redacted = "***"

var (
	// Only known schemes are recognised: in "app://x@tcp(h)/db" the user is app, and the password
	// starts with two slashes.
	urlScheme  = regexp.MustCompile(`^(?i:mysql|mariadb|postgres(?:ql)?|sqlite3?|file)://`)
	fileScheme = regexp.MustCompile(`^(?:(?i:sqlite3?|file):|:memory:)`)

	// The setting's name may contain the word anywhere ("_auth_pass", "sslkey"). SQLCipher's
	// pragmas have the form of calls: key('…'), hexkey('…').
	secretSetting = regexp.MustCompile(`(?i)[\w.-]*(?:pass|pwd|secret|token|key|auth|cred|salt)[\w.-]*\s*(?:=|\(|%28|%3d)`)
)

// RedactDSN returns dsn without its password and without the values of settings that may be secret,
// so that it can be shown. It knows "scheme://user:password@host/db?name=value", go-sql-driver's
// "user:password@tcp(host:port)/db?name=value", PostgreSQL's "host=… user=… password=…", and
// SQLite's paths and "file:" names.
//
// If a text is ambiguous, it hides too much rather than too little: it hides a password that
// contains @, :, / or ?, a password in a DSN without "@host", and everything after the first secret
// setting.
func RedactDSN(dsn string) string {
	at := strings.LastIndex(dsn, "@")
	if at < 0 {
		return redactWithoutUser(dsn)
	}
	scheme := ""
	if !strings.Contains(dsn[at:], "(") { // a URL contains no net(address)
		scheme = urlScheme.FindString(dsn)
	}
	secret := secretStart(dsn)
	shown := scheme + userName(dsn[len(scheme):at], scheme != "")
	if secret <= at {
		// The setting may be part of the password, or the @ part of the setting.
		return shown[:min(len(shown), secret)] + redacted
	}
	if !strings.HasSuffix(shown, ":") && shown != scheme {
		return hideFrom(dsn, secret) // a user without a password
	}
	return shown + redacted + hideFrom(dsn, secret)[at:]
}

// userName returns the part of "user:password" that may be shown: "user:". Without a colon all of
// it is the user, except in a URL, where it may be the password of a user whose name is the scheme;
// then nothing is shown.
func userName(userinfo string, inURL bool) string {
	if colon := strings.Index(userinfo, ":"); colon >= 0 {
		return userinfo[:colon+1]
	}
	if inURL {
		return ""
	}
	return userinfo
}

// redactWithoutUser handles a DSN without @: a file, a host, or a user and password without a host.
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

// secretStart returns the start of the first secret setting's value, or the end of dsn.
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
