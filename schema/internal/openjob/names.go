// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"strconv"

	"github.com/shardid/shardid/schema/internal/idmap"
)

// LogTable is where changes on the source are noted.
func (j *Job) LogTable() string { return "shardid_log_" + j.Name }

// BackTable is where changes on the shards are noted after the switch.
func (j *Job) BackTable() string { return "shardid_back_" + j.Name }

// TriggerName is unique in a database: it has the log, the table and the event.
func (j *Job) TriggerName(kind string, number int, event string) string {
	return "shardid_" + j.Name + "_" + kind + strconv.Itoa(number) + "_" + event
}

// MapTable stores the new id of each row. It stays after the job.
func (j *Job) MapTable() idmap.Table { return idmap.Table("shardid_ids_" + j.Name) }

// SourceTables are the definitions of a migration's own tables on the source.
func (j *Job) SourceTables() []string {
	all := j.Source.OwnTables(j.LogTable())
	if j.Tables.HasMap() {
		all = append(all, j.Source.MapDefinition(string(j.MapTable())))
	}
	return all
}
