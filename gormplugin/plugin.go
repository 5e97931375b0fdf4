package gormplugin

import (
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// Config says what the plugin does. Filling and routing are independent.
type Config struct {
	// Generators fill the fields that carry a keygen tag. A tag that names a
	// generator it lacks makes every create of that model an error.
	Generators keygen.Set

	// Models registers structs whose tags one cannot edit, and tables that are
	// also written as maps without a model. Defaults to none.
	Models []Model

	// Auto has Generators.Default fill every single primary key of 64 bits that
	// is neither tagged nor registered and that gorm would leave to
	// AUTO_INCREMENT. Take care that no table goes on being numbered by its
	// database then. Defaults to false: only what is tagged or registered is
	// filled. With Auto, Generators needs a Default.
	Auto bool

	// NoVerify forbids the one SELECT that filling may send: after an upsert of
	// several rows whose outcome neither their number nor RETURNING tells, it
	// finds out which of the new keys are in the table. Without it these rows'
	// keys are emptied, and a child that Save has stored beside older ones is stored
	// again by the next Save. Defaults to false.
	NoVerify bool

	// Router sends statements on sharded tables to their shards. Defaults to nil:
	// no statement is touched. With a Router the *gorm.DB must have been opened
	// on MySQL, MariaDB or SQLite, with a *sql.DB.
	Router *sharding.Router

	// Replicas are read-only copies of the router's databases, by the names the
	// router has for these. Reads of sharded tables go to one of them in turn;
	// those inside a transaction, those that lock rows, and those with
	// sharding.Primary or dbresolver.Write go to the database itself. Defaults to
	// none: all reads do.
	Replicas map[string][]*sql.DB
}

// Plugin is a gorm.Plugin, for the Use of one or several *gorm.DBs. It is safe
// for concurrent use.
type Plugin struct {
	config Config
}

var _ gorm.Plugin = (*Plugin)(nil)

// New returns the plugin for db.Use.
func New(c Config) *Plugin { return &Plugin{config: c} }

// Name returns "shardid".
func (p *Plugin) Name() string { return pluginName }

const pluginName = "shardid"

// Initialize registers the callbacks. It is called by Use and runs no SQL.
func (p *Plugin) Initialize(db *gorm.DB) error {
	if err := p.initialize(db); err != nil {
		return fmt.Errorf("gormplugin: %w", err)
	}
	return nil
}

// validate finds what would fail at the first insert.
func (c *Config) validate() error {
	var errs []error
	if c.Auto && c.Generators.Default == nil {
		errs = append(errs, errors.New("Config.Auto: there is no Generators.Default to fill with; set it"))
	}
	if err := c.Generators.Check(); err != nil {
		errs = append(errs, fmt.Errorf("Config.Generators: %w", err))
	}
	return errors.Join(errs...)
}

func (p *Plugin) initialize(db *gorm.DB) error {
	if err := p.config.validate(); err != nil {
		return err
	}
	f, err := newFill(db, &p.config)
	if err != nil {
		return err
	}
	if err := f.register(db); err != nil || f.routing == nil {
		return err
	}
	return f.routing.install(db, &p.config)
}
