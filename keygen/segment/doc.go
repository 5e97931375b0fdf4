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
// a customer how many orders there were: see keygen for other forms.
//
// # Failure modes
//
// While the database is down the generator goes on to the last id it holds in
// memory; then calls wait until their context ends, for ten seconds at most,
// and return [keygen.ErrStarved] with the database's error inside. An unknown
// tag is [keygen.ErrUnknownTag] at once. A counter that went back, after a
// restored backup say, is [keygen.ErrRegressed] and nothing is issued from it;
// a process started after the restore cannot know what others issued before, so
// raise the counter above the ids in use when restoring. Ids left in memory at
// Close, or lost with the process, are gaps.
package segment
