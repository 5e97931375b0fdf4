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
// up and Config.Wait has passed. The next request tries again.
//
// # Differences from Leaf
//
// A dot belongs to the key, where Spring cuts the key at its last dot, and a %2F is a
// slash, which Tomcat refuses. Leaf's pages /cache and /db are /status/ here.
package serve
