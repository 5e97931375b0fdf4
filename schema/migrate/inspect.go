package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Inspect looks for what would stop a migration or surprise somebody in the
// middle of it, and changes nothing. It reads definitions and settings, the
// ends of each table's ids and, where the sharding key may be NULL, the table
// up to the first such row. What was found worst comes first.
//
// A database with shards that does not answer is a finding; the source has to.
func (j *Job) Inspect(ctx context.Context) ([]Finding, error) {
	i := &inspection{job: j}
	source, err := openSide(ctx, "source", fenceTable, j.cfg.Source)
	if err != nil {
		return nil, err
	}
	defer source.close()
	if err := i.source(ctx, source); err != nil {
		return nil, fmt.Errorf("inspect the source: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(j.cfg.Shards)) {
		i.shard(ctx, name)
	}
	rank := map[Severity]int{Block: 0, Warn: 1, Info: 2}
	slices.SortStableFunc(i.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank[a.Severity], rank[b.Severity]), cmp.Compare(a.Database, b.Database), cmp.Compare(a.Table, b.Table))
	})
	return i.found, nil
}

// inspection collects findings.
type inspection struct {
	job    *Job
	found  []Finding
	packet int64 // the source's max_allowed_packet
}

// probe is where a finding is made.
type probe struct {
	*inspection
	*session

	shape shape // of the table at hand
}

func (p probe) add(code Code, severity Severity, message, fix string) {
	p.found = append(p.found, Finding{code, severity, p.side.name, p.shape.name, message, fix})
}

// source may be repeated: a database can be away for a moment.
func (i *inspection) source(ctx context.Context, source *side) error {
	return source.do(ctx, func(s *session) error {
		i.found = []Finding{}
		var shapes []shape
		for _, t := range i.job.cfg.Tables {
			if _, err := (&world{Job: i.job}).presentName(ctx, s, &table{conf: t}); err != nil {
				return err
			}
			sh, err := s.side.describe(ctx, s, t.Name)
			p := probe{i, s, shape{name: t.Name}}
			switch {
			case errors.Is(err, ErrUnsupported):
				p.add(Unsupported, Block, plain(err), "leave the table where it is, or change it as said")
			case err != nil:
				return err
			default:
				shapes = append(shapes, sh)
			}
		}
		for _, sh := range shapes {
			if err := (probe{i, s, sh}).table(ctx); err != nil {
				return fmt.Errorf("table %s: %w", sh.name, err)
			}
		}
		if len(shapes) == len(i.job.cfg.Tables) {
			if err := i.relations(ctx, s, shapes); err != nil {
				return err
			}
		}
		return probe{i, s, shape{}}.database(ctx)
	})
}

// relations looks at how the tables hang together, and whether ids can become new
// ones.
func (i *inspection) relations(ctx context.Context, s *session, shapes []shape) error {
	w := &world{Job: i.job, source: s.side}
	for ord, sh := range shapes {
		w.tables = append(w.tables, &table{shape: sh, ord: ord, conf: i.job.cfg.Tables[ord]})
	}
	p := probe{i, s, shape{}}
	if err := w.resolve(); err != nil {
		p.add(Relations, Block, plain(err), "change the table or its settings as said")
		return nil
	}
	err := w.checkIDs(ctx, s)
	if errors.Is(err, ErrUnsupported) {
		p.add(NoNewID, Block, plain(err), "change those rows, or choose another way to number them")
		return nil
	}
	return err
}

// plain is the text of an error without the sentinel's.
func plain(err error) string {
	return strings.TrimPrefix(err.Error(), ErrUnsupported.Error()+": ")
}

// table looks at what every kind of database has.
func (p probe) table(ctx context.Context) error {
	p.edges()
	p.uniqueKeys()
	p.ownTriggers()
	for _, look := range []func(context.Context) error{p.ids, p.shardingKey} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	if p.side.Name() == "sqlite" {
		return nil
	}
	return p.mysqlTable(ctx)
}

// database looks at settings and at the database as a whole.
func (p probe) database(ctx context.Context) error {
	var names []string
	for _, t := range p.job.cfg.Tables {
		names = append(names, t.Name)
	}
	blockers, err := p.side.blockers(ctx, p.session, names)
	if err != nil {
		return err
	}
	for _, b := range blockers {
		p.add(OutsideJob, Block, b, "drop it, or take what it belongs to into the job")
	}
	if p.side.Name() == "sqlite" {
		return p.sqliteDatabase(ctx)
	}
	return p.mysqlSource(ctx)
}

func (p probe) has(table string) bool {
	return slices.ContainsFunc(p.job.cfg.Tables, func(t Table) bool { return strings.EqualFold(t.Name, table) })
}

// edges are the foreign keys to and from the table.
func (p probe) edges() {
	for _, fk := range p.shape.parents {
		if !p.has(fk.table) {
			p.add(OutsideJob, Block, fmt.Sprintf("(%s) refers to the table %s, which is not in the job", strings.Join(fk.columns, ", "), fk.table),
				"add "+fk.table+" to the job, or drop the foreign key")
		}
		if fk.cascading {
			p.add(Cascades, Info, fmt.Sprintf("changes of %s cascade into it", fk.table), "nothing: triggers on "+fk.table+" note the rows")
		}
	}
	for _, fk := range p.shape.children {
		if !p.has(fk.table) {
			p.add(OutsideJob, Block, fmt.Sprintf("the table %s, which is not in the job, refers to it by (%s)", fk.table, strings.Join(fk.columns, ", ")),
				"add "+fk.table+" to the job, or drop the foreign key")
		}
	}
}

// settings of the table as the job has it.
func (p probe) settings() Table {
	for _, t := range p.job.cfg.Tables {
		if strings.EqualFold(t.Name, p.shape.name) {
			return t
		}
	}
	panic("bug: a table that is not in the job is inspected")
}

func (p probe) uniqueKeys() {
	key := p.settings().Key
	for _, columns := range p.shape.uniques {
		if !slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, key) || strings.EqualFold(c, p.shape.key) }) {
			p.add(UniqueAcross, Warn, "the unique key on ("+strings.Join(columns, ", ")+") will hold within each shard, not across them",
				"keep its values in a table that is sharded by them, or do without")
		}
	}
}

func (p probe) ownTriggers() {
	var own []string
	for _, name := range p.shape.triggers {
		if !strings.HasPrefix(name, "shardid_") {
			own = append(own, name)
		}
	}
	if len(own) > 0 {
		p.add(ForeignTriggers, Block, "it has the triggers "+strings.Join(own, ", ")+", which the shards will not have",
			"move what they do into the application, and drop them")
	}
}

// ids looks at both ends of the table.
func (p probe) ids(ctx context.Context) error {
	key := p.side.Quote(p.shape.key)
	lowest, err := p.number(ctx, fmt.Sprintf("SELECT COALESCE(MIN(%s), 1) FROM %s", key, p.side.Quote(p.shape.name)))
	if err == nil && lowest <= 0 {
		p.add(NonPositiveID, Info, fmt.Sprintf("ids of 0 or below exist, the lowest is %d", lowest), "nothing, if the application can live with them on")
	}
	return err
}

// shardingKey must be there in every row.
func (p probe) shardingKey(ctx context.Context) error {
	key := p.settings().Key
	c, ok := p.shape.column(key)
	if p.settings().Via != "" {
		return nil
	}
	if !ok {
		p.add(NoShardingKey, Block, "it has no column "+key, "shard it by a column that it has")
		return nil
	}
	if !c.nullable || strings.EqualFold(key, p.shape.key) {
		return nil
	}
	n, err := p.number(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s IS NULL LIMIT 1",
		p.side.Quote(p.shape.key), p.side.Quote(p.shape.name), p.side.Quote(c.name)))
	switch {
	case err != nil:
		return err
	case n != 0:
		p.add(NoShardingKey, Block, fmt.Sprintf("%s is NULL in the row %d", c.name, n), "give those rows a value")
	default:
		p.add(NoShardingKey, Warn, c.name+" may be NULL; a row without it ends the run", "declare it NOT NULL")
	}
	return nil
}

// shard looks at one database with shards.
func (i *inspection) shard(ctx context.Context, name string) {
	shard, err := openSide(ctx, name, shardFenceTable, i.job.cfg.Shards[name])
	if err == nil {
		defer shard.close()
		err = shard.once(ctx, func(s *session) error { return probe{i, s, shape{}}.targets(ctx) })
	}
	if err != nil {
		i.found = append(i.found, Finding{Unreachable, Block, name, "", err.Error(), "check that it runs, and the user's rights"})
	}
}

// targets looks for rows that are there already.
func (p probe) targets(ctx context.Context) error {
	for _, t := range p.job.cfg.Tables {
		for _, target := range t.Map.Targets() {
			if target.DB != p.side.name {
				continue
			}
			if err := p.target(ctx, target.Table); err != nil {
				return err
			}
		}
	}
	if p.side.Name() == "sqlite" {
		return p.sqliteDatabase(ctx)
	}
	return p.mysqlShard(ctx)
}

func (p probe) target(ctx context.Context, name string) error {
	exists, err := p.side.exists(ctx, p.session, name)
	if err != nil || !exists {
		return err
	}
	rows, err := p.number(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM "+p.side.Quote(name)+" LIMIT 1) AS one")
	if err == nil && rows > 0 {
		p.shape.name = name
		p.add(NotEmpty, Warn, "the table exists and has rows", "nothing, if they are this job's; otherwise drop it, as the job would remove its rows")
	}
	return err
}
