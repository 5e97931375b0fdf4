// SPDX-License-Identifier: Apache-2.0

// Package observe reports the state of a service's generators, shards, statements and migrations:
// as metrics, as health checks, and as the status page of package statuspage.
//
// # Promise
//
// Issuing an id costs nothing more: the metrics of generators are computed from [keygen.Stats] when
// they are read. A statement costs two additions and one map lookup, and only where [Statements]
// observes it. No label contains the value of a key, an id or a statement's text: labels are the
// names of generators, tables and kinds, so there are few of them.
//
// # Metrics
//
// [Service.Gather] returns the metrics as values. [Service.Metrics] serves them as text that
// Prometheus and OpenTelemetry's collector read. The modules observe/prometheus and observe/otel
// pass them to these libraries, which this module does not import. Names follow Prometheus'
// conventions: base units, and _total for counters.
//
// # Health
//
// [Service.Live] answers as long as the process runs, and checks nothing: a restart repairs no
// unreachable database, and would lose the ids that the process holds in memory. [Service.Ready]
// checks each generator, the databases of the shards and the router's route; see [Service.Health]
// for the meaning of each check.
package observe
