// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// Inspect finds what would stop a migration or cause surprises during it, and changes
// nothing. The worst findings come first. It calls inspected, in the same goroutine, after
// each time it has read a table: with the estimated rows of that table, and of all that it
// has to read.
func Inspect(ctx context.Context, c openjob.Config, inspected func(table string, rows, of int64)) ([]Finding, error) {
	source, err := backend.Open(ctx, "source", backend.FenceTable, c.Source)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	i := &inspection{cfg: c, from: source, tell: inspected}
	if err := i.source(ctx, source); err != nil {
		return nil, fmt.Errorf("inspect the source: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Shards)) {
		i.shard(ctx, name)
	}
	rank := map[string]int{Block: 0, Warn: 1, Info: 2}
	slices.SortStableFunc(i.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank[a.Severity], rank[b.Severity]), cmp.Compare(a.Database, b.Database), cmp.Compare(a.Table, b.Table))
	})
	return i.found, nil
}

// inspection collects findings.
type inspection struct {
	cfg    openjob.Config
	from   *backend.Database // the source
	found  []Finding
	packet int64             // max_allowed_packet of the source
	preset map[string]string // settings of new connections to the source
	mark   string            // of the job, "" before its first run
	home   string            // the place of the source
	work   work
	tell   func(table string, rows, of int64)

	// Of each table, by its name in the configuration:
	needed map[string][]string // collations
	bare   map[string][]string // columns of TIMESTAMP NOT NULL without a default

	others    map[string][]string  // users with rights on it on PostgreSQL, except its owner and the job's
	sequences map[string][]string  // columns whose default uses a sequence
	drafts    map[string]draft     // of the shards' tables
	computed  map[string][]Finding // of expressions that shards would evaluate otherwise
	shapes    map[string]backend.Table
}

// probe is the place where a finding is made.
type probe struct {
	*inspection
	*backend.Session

	shape backend.Table // of the present table
}

// tableProbe checks a table of the source.
type tableProbe struct{ probe }

// serverProbe checks a server or a file as a whole.
type serverProbe struct{ probe }

func (p probe) add(code, severity string, message, fix string) {
	p.found = append(p.found, Finding{code, severity, p.Database.Label, p.shape.Name, message, fix, nil})
}

// source may be called again: a database can be unreachable for a moment.
func (i *inspection) source(ctx context.Context, source *backend.Database) error {
	return source.Do(ctx, func(s *backend.Session) error {
		i.found, i.needed, i.bare, i.sequences = []Finding{}, map[string][]string{}, map[string][]string{}, map[string][]string{}
		i.others = map[string][]string{}
		i.drafts, i.computed, i.shapes = map[string]draft{}, map[string][]Finding{}, map[string]backend.Table{}
		i.work = work{rows: map[string]int64{}}
		var err error
		if i.home, err = s.Place(ctx); err != nil {
			return err
		}
		shapes, err := i.describe(ctx, s)
		if err != nil {
			return err
		}
		for _, sh := range shapes {
			if err := i.work.expect(ctx, s, sh.Name); err != nil {
				return err
			}
		}
		for _, sh := range shapes {
			if err := (tableProbe{probe{i, s, sh}}).table(ctx); err != nil {
				return fmt.Errorf("table %s: %w", sh.Name, err)
			}
		}
		if len(shapes) == len(i.cfg.Tables) {
			if err := i.relations(ctx, s, shapes); err != nil {
				return err
			}
		}
		if err := i.jobs(ctx, s); err != nil {
			return err
		}
		if err := i.retired(ctx, s); err != nil {
			return err
		}
		return serverProbe{probe{i, s, backend.Table{}}}.database(ctx)
	})
}

// describe returns the serving tables that a migration can move; the others are findings.
func (i *inspection) describe(ctx context.Context, s *backend.Session) (shapes []backend.Table, err error) {
	for _, t := range i.cfg.Tables {
		name, err := openjob.PresentName(ctx, s, t.Name)
		if err != nil {
			return nil, err
		}
		p := probe{i, s, backend.Table{Name: t.Name}}
		if name != t.Name {
			p.add(Switched, Info, "the shards serve; here it is "+name+", and closed", "nothing: the other checks matter only before a switch")
			continue
		}
		sh, err := s.Database.Describe(ctx, s, name)
		switch {
		case errors.Is(err, backend.ErrUnsupported):
			p.add(Unsupported, Block, plain(err), "leave the table out, or change it as the message says")
		case err != nil:
			return nil, err
		default:
			shapes = append(shapes, sh)
		}
	}
	return shapes, nil
}

// jobs finds other jobs that own the tables, and reads the mark of this one.
func (i *inspection) jobs(ctx context.Context, s *backend.Session) error {
	begun, err := s.Database.Exists(ctx, s, backend.SpanTable)
	if err != nil || !begun {
		return err
	}
	var names []string
	for _, t := range i.cfg.Tables {
		names = append(names, t.Name)
	}
	switch err := lead.CheckOwner(ctx, s, i.cfg.Name, names); {
	case errors.Is(err, lead.ErrOwned):
		probe{i, s, backend.Table{}}.add(OtherJob, Block, strings.TrimPrefix(err.Error(), lead.ErrOwned.Error()+": "), "end that job first, or go on with it")
	case err != nil:
		return err
	}
	marks, err := s.List(ctx, "SELECT owner FROM "+backend.FenceTable+" WHERE job = ?", i.cfg.Name)
	i.mark = strings.Join(marks, "")
	return err
}

// retired finds tables that have the names of those that the switch retires. While a job is
// under way, its commands find them.
func (i *inspection) retired(ctx context.Context, s *backend.Session) error {
	for _, t := range i.cfg.Tables {
		name := backend.Retired(t.Name)
		there, err := s.Database.Exists(ctx, s, name)
		if err == nil && there && i.mark == "" {
			there, err = s.Database.Exists(ctx, s, t.Name)
		}
		if err != nil {
			return err
		}
		if there && i.mark == "" {
			probe{i, s, backend.Table{Name: t.Name}}.add(NameTaken, Block, "the table "+name+" exists, and the switch gives "+t.Name+" this name", "rename it, or drop it if nobody needs its rows")
		}
	}
	return nil
}

// relations checks the relations between the tables, and whether ids can get new ones.
func (i *inspection) relations(ctx context.Context, s *backend.Session, shapes []backend.Table) error {
	p := tableProbe{probe{i, s, backend.Table{}}}
	w, err := openjob.Described(i.cfg, s.Database, shapes)
	if err != nil {
		p.add(Relations, Block, plain(err), "change the table or its settings as the message says")
		return nil
	}
	for _, t := range w.Tables {
		i.shapes[t.Conf.Name] = t.Table
		p.keyless(t)
		p.carriedTriggers(w, t)
		if err := p.unplaced(ctx, t); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
		i.hasRead(t.Name)
		if err := tryExpressions(ctx, p.probe, t); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	err = w.Tables.MayReturn(ctx, s)
	if errors.Is(err, backend.ErrNotReady) {
		message, fix, _ := strings.Cut(strings.TrimPrefix(err.Error(), backend.ErrNotReady.Error()+": "), "; ")
		p.add(Privileges, Block, message, fix)
		err = nil
	}
	if err != nil {
		return err
	}
	err = w.Tables.CheckIDs(ctx, s)
	if errors.Is(err, backend.ErrUnsupported) {
		p.add(NoNewID, Block, plain(err), "change those rows, or choose another way to number them")
		return nil
	}
	return err
}

// plain is the text of an error without the sentinel's text.
func plain(err error) string {
	return strings.TrimPrefix(err.Error(), backend.ErrUnsupported.Error()+": ")
}

// table makes the checks that every kind of database needs.
func (p tableProbe) table(ctx context.Context) error {
	p.edges()
	p.uniqueKeys()
	if p.Database.Name() != "mysql" {
		p.ownTriggers()
	}
	if err := p.ids(ctx); err != nil {
		return err
	}
	for _, look := range []func(context.Context) error{p.shardingKey, p.ownKeyColumns} {
		if err := look(ctx); err != nil {
			return err
		}
		p.hasRead(p.shape.Name)
	}
	switch p.Database.Name() {
	case "sqlite":
		return nil
	case "postgres":
		return postgresTable(p).look(ctx)
	}
	return p.mysqlTable(ctx)
}

// database checks settings, and the database as a whole.
func (p serverProbe) database(ctx context.Context) error {
	var names []string
	for _, t := range p.cfg.Tables {
		names = append(names, t.Name)
	}
	blockers, err := p.Database.Blockers(ctx, p.Session, names)
	if err != nil {
		return err
	}
	for _, b := range blockers {
		p.add(OutsideJob, Block, b, "drop it, or take what it belongs to into the job")
	}
	switch p.Database.Name() {
	case "sqlite":
		return p.sqliteDatabase(ctx)
	case "postgres":
		return p.postgresSource(ctx)
	}
	return p.mysqlSource(ctx)
}

func (p probe) has(table string) bool {
	return slices.ContainsFunc(p.cfg.Tables, func(t openjob.TableConfig) bool { return strings.EqualFold(t.Name, table) })
}

// edges checks the foreign keys of the table and to it.
func (p tableProbe) edges() {
	for _, fk := range p.shape.Parents {
		refers := fmt.Sprintf("(%s) refers to the table %s, which is not in the job", strings.Join(fk.Columns, ", "), fk.Table)
		switch {
		case p.has(fk.Table):
		case fk.Cascades() && p.Database.Name() == "postgres":
			p.add(Cascades, Warn, refers+fmt.Sprintf(", and changes rows here by itself; these changes are followed until the switch; from then on %s refuses them, so that the statement on %s fails until finalize drops the key", backend.Retired(p.shape.Name), fk.Table),
				"let the application change rows of "+p.shape.Name+" before those of "+fk.Table+" from the switch on, or add "+fk.Table+" to the job")
		case fk.Deletes || fk.Updates && p.Database.Name() != "mysql":
			p.add(OutsideJob, Block, refers+" and changes rows here by itself", "add "+fk.Table+" to the job, or drop the foreign key")
		case fk.Updates && fk.Unseen != "":
			p.add(OutsideJob, Block, refers+", and changes rows here by itself when its key is changed, and no trigger there would note that: "+fk.Unseen, "drop the foreign key, or make it ON UPDATE NO ACTION")
		default:
			if fk.Updates {
				p.add(Cascades, Warn, fmt.Sprintf("its foreign key on (%s) cascades changes of (%s) of %s; from run until the job is finalized or aborted, a trigger on %[3]s refuses such changes with an error that names the row",
					strings.Join(fk.Columns, ", "), strings.Join(fk.Refers, ", "), fk.Table), "change no key of "+fk.Table+" meanwhile; afterwards let the application change rows of "+p.shape.Name+" along with it")
			}
			p.add(OutsideJob, Warn, refers+"; the shards will not check that the row exists there, and until finalize drops the key, rows of "+backend.Retired(p.shape.Name)+" prevent rows that they refer to from being deleted",
				"let the application check it, or add "+fk.Table+" to the job")
		}
		if p.Database.Name() == "mysql" && strings.EqualFold(fk.Table, p.shape.Name) {
			if !fk.Deletes { // InnoDB refuses an update that would cascade into the same table
				continue
			}
			p.add(Cascades, Block, fmt.Sprintf("the foreign key on (%s) to the table itself changes rows that no trigger sees", strings.Join(fk.Columns, ", ")),
				"drop it, or make it NO ACTION and let the application change these rows")
			continue
		}
		if fk.Cascades() && p.has(fk.Table) { // otherwise the key is a Block finding
			p.add(Cascades, Info, fmt.Sprintf("the foreign key on (%s) changes its rows when rows of %s change; on the shards no foreign key does", strings.Join(fk.Columns, ", "), fk.Table),
				"let the application delete or change rows of "+p.shape.Name+" along with those of "+fk.Table+" from the switch on; until then triggers note such changes")
		}
	}
	for _, fk := range p.shape.Children {
		if !p.has(fk.Table) {
			p.inward(fk)
		}
	}
}

// inward checks a foreign key of a table outside of the job.
func (p tableProbe) inward(fk backend.ForeignKey) {
	fix := "add " + fk.Table + " to the job, or drop the foreign key"
	elsewhere := p.Database.Name() == "mysql" && strings.Contains(fk.Table, ".") // in another database
	if drop, add := fk.Statements(fk.Table, p.shape.Name); p.Database.Name() != "sqlite" && !elsewhere {
		fix += ": " + drop + "; after an abort, create it again by: " + add
	}
	p.add(OutsideJob, Block, fmt.Sprintf("the table %s, which is not in the job, refers to it by (%s)", fk.Table, strings.Join(fk.Columns, ", ")), fix)
}

// settings is the configuration of the table.
func (p probe) settings() openjob.TableConfig {
	for _, t := range p.cfg.Tables {
		if strings.EqualFold(t.Name, p.shape.Name) {
			return t
		}
	}
	panic("bug: a table that is not in the job is inspected")
}

func (p tableProbe) uniqueKeys() {
	key := p.settings().Key
	for _, columns := range p.shape.Uniques {
		if !slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, key) || strings.EqualFold(c, p.shape.Key) }) {
			p.add(UniqueAcross, Warn, "the unique key on ("+strings.Join(columns, ", ")+") will hold within each shard, not across them",
				"declare a unique lookup of its column after the migration (shardid lookup), which checks all shards, or drop the unique key")
		}
	}
}

func (p tableProbe) ownTriggers() {
	var own []string
	for _, name := range p.shape.Triggers {
		if !strings.HasPrefix(name, "shardid_") {
			own = append(own, name)
		}
	}
	if len(own) > 0 {
		p.add(ForeignTriggers, Block, "it has the triggers "+strings.Join(own, ", ")+", which the shards will not have",
			"move what they do into the application, and drop them")
	}
}

// carriedTriggers checks the table's own triggers.
func (p tableProbe) carriedTriggers(w *openjob.Job, t *openjob.Table) {
	p.shape.Name = t.Conf.Name
	for _, own := range t.Own {
		carried := true
		for i := range t.Conf.Map.Targets() {
			if _, why, fix := w.Tables.Carried(t, own, i); why != "" {
				p.add(ForeignTriggers, Block, "it has the trigger "+own.Name+", which the shards would not have: "+why, fix)
				carried = false
				break
			}
		}
		if carried {
			p.add(ForeignTriggers, Warn, "the shards get the trigger "+own.Name+" before the switch; there it reaches rows of its own shard alone, and runs with the rights of the user of this job",
				"make sure that it writes only rows that belong to the shard of the row of "+t.Conf.Name+", and keep the user")
		}
	}
}

// ids checks the lowest id of the table.
func (p tableProbe) ids(ctx context.Context) error {
	key := p.Database.Quote(p.shape.Key)
	lowest, err := p.Number(ctx, fmt.Sprintf("SELECT COALESCE(MIN(%s), 1) FROM %s", key, p.Database.Quote(p.shape.Name)))
	if err == nil && lowest <= 0 {
		p.add(NonPositiveID, Info, fmt.Sprintf("ids of 0 or below exist; the lowest is %d", lowest), "nothing, if the application accepts such ids")
	}
	return err
}

// shardingKey checks the column that determines the shard of a row.
func (p tableProbe) shardingKey(ctx context.Context) error {
	conf := p.settings()
	c, ok := p.shape.Column(cmp.Or(conf.Via, conf.Key))
	switch {
	case !ok && conf.Via != "":
		return nil // relations reports it
	case !ok && slices.ContainsFunc(p.shape.Generated, func(name string) bool { return strings.EqualFold(name, conf.Key) }):
		p.add(NoShardingKey, Block, conf.Key+" is a generated column, which a copy does not read", "shard it by the column that "+conf.Key+" is computed from, or make it an ordinary column that the application writes")
		return nil
	case !ok:
		p.add(NoShardingKey, Block, "it has no column "+conf.Key, "shard it by a column that it has")
		return nil
	case strings.EqualFold(c.Name, p.shape.Key):
		return nil
	}
	if c.Nullable {
		if err := p.without(ctx, c); err != nil {
			return err
		}
	}
	if conf.Via != "" || !strings.Contains(strings.ToLower(c.Type), "int") {
		return nil
	}
	n, err := p.count(ctx, c, "= 0")
	if err == nil && n > 0 {
		p.add(ZeroShardingKey, Warn, fmt.Sprintf("%s is 0 in %s", c.Name, rowsOf(n)),
			"when 0 means unknown, give those rows a value: they would all lie on one shard, and a struct whose "+c.Name+" is 0 counts as one without a key")
	}
	return err
}

// without finds rows in which the column is NULL: such rows belong to no shard.
func (p tableProbe) without(ctx context.Context, c backend.Column) error {
	n, err := p.count(ctx, c, "IS NULL")
	switch {
	case err != nil:
		return err
	case n > 0:
		first, err := p.Number(ctx, fmt.Sprintf("SELECT MIN(%s) FROM %s WHERE %s IS NULL", p.Database.Quote(p.shape.Key), p.Database.Quote(p.shape.Name), p.Database.Quote(c.Name)))
		p.add(NoShardingKey, Block, fmt.Sprintf("%s is NULL in %s, the first of which is row %d", c.Name, rowsOf(n), first), "give those rows a value")
		return err
	}
	p.add(NoShardingKey, Warn, c.Name+" may be NULL; a row without it ends the run, or waits for one", "declare it NOT NULL")
	return nil
}

// count is how many rows satisfy a condition on a column.
func (p tableProbe) count(ctx context.Context, c backend.Column, condition string) (int64, error) {
	return p.Number(ctx, fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s %s", p.Database.Quote(p.shape.Name), p.Database.Quote(c.Name), condition))
}

func rowsOf(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}
