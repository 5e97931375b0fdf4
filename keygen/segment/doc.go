// Package segment issues ids from segments of a counter kept in the
// application's own database (Leaf-segment, 号段模式): one round trip reserves
// thousands of ids, and a second segment is fetched while the first is in use
// (double buffer).
//
// # Promise
//
// No id is issued twice as long as the source never gives one twice; for
// sqlstore's tags that is as durable as the database's commits. Ids of one
// process rise; ids of several processes rise together only roughly, each
// working through a segment of its own. They are dense, so consecutive ids tell
// a customer how many orders there were: see keygen for other forms. A process that
// issues a few ids only takes the first ones of a segment: as segments begin at
// multiples of the step, `id % n` of many such processes falls on few shards.
//
// # Size of a segment
//
// The first two segments have the row's step. Then the size follows the demand,
// as in Leaf: where a segment would be used up within 15 minutes the next one is
// twice as large, where it would last for more than 30 half as large, never
// below the row's step and not above Config.MaxStep. The next segment is fetched
// when a tenth of the one in use is gone, so that at a steady rate the ids in
// memory last for 13 minutes at least. A change of the row's step is seen by the
// first fetch a minute later, and sizes start from it anew.
//
// # Failure modes
//
// While the database is down the generator goes on to the last id it holds in
// memory; then calls wait until their context ends, for ten seconds at most,
// and return [keygen.ErrStarved] with the database's error inside. A database
// that is only slow makes calls wait, never fail; they get ids in the order in
// which they came.
//
// What no retry cures shows at once, in New and later on when the ids in memory
// are used up: an unknown tag ([keygen.ErrUnknownTag]); a table, right or column
// that is missing, a step below 1, a *sql.DB that was closed and the like
// ([keygen.SetupError], which says what to do); a counter at its end
// ([keygen.ErrExhausted]). A counter that went back, after a restored backup say,
// is [keygen.ErrRegressed] and nothing is issued from it; a process started after
// the restore cannot know what others issued before, so raise the counter above
// the ids in use when restoring.
//
// Ids left in memory at Close, or lost with the process, are gaps: two segments at
// most.
//
// Each tag has a Generator of its own, which waits for no other's database.
package segment
