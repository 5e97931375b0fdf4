// SPDX-License-Identifier: Apache-2.0

// Package serve gives ids over HTTP to programs that are not written in Go.
//
// # Promise
//
// The paths of Leaf's server answer as Leaf's does: a client of Leaf gets an id as text, or
// the error that Spring Boot 1.5 makes of Leaf's exceptions. The message of an error has
// the reason after Leaf's text. Ids come from the tables of package sqlstore, so that
// several servers, and Leaf itself for segments, can share them.
//
// A tag is opened by the first request for it, and stays open until Close. At most
// Config.Tags are open. Unknown tags are not cached.
//
// # Failure modes
//
// When the database is unreachable, a request fails once the ids in memory are used up and
// Config.Wait has passed. The next request tries again. Until then, the error of a segment
// has Leaf's code -3, which Leaf gives for a tag whose segments it cannot fetch.
//
// Connections are closed when a header takes more than 5 seconds to arrive, a body more
// than 10, an answer more than 30 seconds beyond Config.Wait to be read, or no request
// arrives for two minutes.
//
// A listener that fails ends the service, as the end of its context does: pending requests
// are answered first.
//
// # Differences from Leaf
//
// docs/serve.md lists them.
package serve
