// SPDX-License-Identifier: Apache-2.0

// Package serve gives ids over HTTP to programs that are not written in Go.
//
// # Promise
//
// The paths of Leaf's server answer as Leaf's does: a client of Leaf sees an id as
// text, or the error that Spring Boot 1.5 makes of Leaf's exceptions. After Leaf's
// text, the message of an error says why. Ids come from the tables of package
// sqlstore, so that several servers, and Leaf itself for segments, can share them.
//
// A tag is opened when it is first asked for, and stays open until Close. There are
// at most Config.Tags of them. A tag that is unknown is not remembered.
//
// # Failure modes
//
// A database that is away is an error of the request once the ids in memory are used
// up and Config.Wait has passed. The next request tries again. While it is away, a segment
// has Leaf's code -3, as a tag has whose segments Leaf cannot take.
//
// Connections are closed when a header takes more than 5 seconds to come, a body more than
// 10, an answer more than 30 seconds beyond Config.Wait to be read, or no request comes for
// two minutes.
//
// A listener that fails ends the service as the end of its context does: requests under way
// are answered first.
//
// # Differences from Leaf
//
// docs/serve.md lists them.
package serve
