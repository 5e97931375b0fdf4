package migrate

import "strconv"

// logTable is where changes on the source are noted.
func (j *Job) logTable() string { return "shardid_log_" + j.cfg.Name }

// backTable is where changes on the shards are noted after the switch.
func (j *Job) backTable() string { return "shardid_back_" + j.cfg.Name }

// triggerName is unique in a database: which log, which table, which event.
func (j *Job) triggerName(kind string, number int, event string) string {
	return "shardid_" + j.cfg.Name + "_" + kind + strconv.Itoa(number) + "_" + event
}
