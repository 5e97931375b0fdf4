// SPDX-License-Identifier: Apache-2.0

// Package observe says how the generators, the shards, the statements and the migrations of
// a service are: as metrics, as health checks, and for the status page of package statuspage.
//
// # Promise
//
// Nothing of it costs the path of an id anything: metrics of generators are computed from
// [keygen.Stats] when somebody asks for them. A statement costs two additions and a look
// into a map, and only where [Statements] observes the router's statements. No label has
// the value of a key, an id or a statement's text: labels are the names of generators,
// tables and kinds, of which there are few.
//
// # Metrics
//
// [Service.Gather] returns them as values; [Service.Metrics] serves them as text that
// Prometheus and OpenTelemetry's collector read. The modules observe/prometheus and
// observe/otel hand them to these libraries, which this module does not import. Names
// follow Prometheus' conventions: base units, _total on what only rises.
//
// # Health
//
// [Service.Live] answers as long as the process does, and looks at nothing: no restart
// mends a database that is away, and a restarted process would have lost the ids that it
// holds in memory. [Service.Ready] looks at each generator, at the databases of the shards
// and at the router's route; see [Service.Health] for what each of them means.
package observe
