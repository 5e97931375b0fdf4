// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/shardid/shardid/integration/database"
)

// supervision has the rules by which a supervisor restarts a runner.
type supervision struct {
	args []string // of shardid
	last []int    // exit codes after which nothing is started again
}

// readUnit reads the unit of systemd.
func readUnit(t *testing.T) (s supervision) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/shardid-migrate.service")
	if err != nil {
		t.Fatal(err)
	}
	restart := ""
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "ExecStart":
			s.args = strings.Fields(value)
		case "Restart":
			restart = value
		case "RestartPreventExitStatus":
			for code := range strings.FieldsSeq(value) {
				n, err := strconv.Atoi(code)
				if err != nil {
					t.Fatal(err)
				}
				s.last = append(s.last, n)
			}
		}
	}
	if restart != "on-failure" || len(s.args) < 3 || s.args[0] != "/usr/local/bin/shardid" {
		t.Fatalf("Restart=%s, %q", restart, s.args)
	}
	s.args = s.args[1:]
	return s
}

// readJob reads the manifest of Kubernetes.
func readJob(t *testing.T) supervision {
	t.Helper()
	text, err := os.ReadFile("../../deploy/migrate-job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type named struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	}
	var job struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   named
		Spec       struct {
			Parallelism      int
			BackoffLimit     int `yaml:"backoffLimit"`
			PodFailurePolicy struct {
				Rules []struct {
					Action      string
					OnExitCodes *struct {
						ContainerName string `yaml:"containerName"`
						Operator      string
						Values        []int
					} `yaml:"onExitCodes"`
					OnPodConditions []map[string]string `yaml:"onPodConditions"`
				}
			} `yaml:"podFailurePolicy"`
			Template struct {
				Spec struct {
					RestartPolicy string `yaml:"restartPolicy"`
					Grace         int    `yaml:"terminationGracePeriodSeconds"`
					Containers    []struct {
						Name, Image     string
						Args            []string
						EnvFrom         []map[string]named `yaml:"envFrom"`
						VolumeMounts    []named            `yaml:"volumeMounts"`
						SecurityContext map[string]any     `yaml:"securityContext"`
					}
					Volumes []struct {
						Name      string
						ConfigMap named `yaml:"configMap"`
					}
				}
			}
		}
	}
	read := yaml.NewDecoder(bytes.NewReader(text))
	read.KnownFields(true)
	if err := read.Decode(&job); err != nil {
		t.Fatal(err)
	}
	pod, rule := job.Spec.Template.Spec, job.Spec.PodFailurePolicy.Rules[0]
	run := pod.Containers[0]
	// Kubernetes takes a policy of failures only with Never, and counts what it does not ignore.
	if job.APIVersion != "batch/v1" || job.Kind != "Job" || pod.RestartPolicy != "Never" || job.Spec.BackoffLimit < 1000 ||
		rule.Action != "FailJob" || rule.OnExitCodes.ContainerName != run.Name || rule.OnExitCodes.Operator != "In" ||
		pod.Volumes[0].Name != run.VolumeMounts[0].Name {
		t.Fatalf("%+v", job)
	}
	args := slices.Clone(run.Args)
	for i := range args {
		args[i] = strings.TrimPrefix(args[i], run.VolumeMounts[0].MountPath+"/")
	}
	return supervision{args, rule.OnExitCodes.Values}
}

func TestTheUnitAndTheJobRunTheSameAndEndByTheSameCodes(t *testing.T) {
	unit, job := readUnit(t), readJob(t)
	if !slices.Equal(unit.args, job.args) || !slices.Equal(unit.last, job.last) {
		t.Errorf("%+v and %+v", unit, job)
	}
}

// keep restarts a runner until it exits with a final code, as Restart=on-failure does. It
// sends each runner that it has started. The end of the test ends it with -1.
func (o *operator) keep(t *testing.T, s supervision, started chan<- *command, more ...string) (code int) {
	t.Helper()
	for {
		verb, rest := s.args[1], append(slices.Clone(s.args[4:]), more...) // start adds the file
		c := o.start(t, verb, rest...)
		select {
		case started <- c:
		case <-t.Context().Done():
			return -1
		}
		select {
		case <-c.ended:
		case <-t.Context().Done():
			return -1
		}
		if code = c.ProcessState.ExitCode(); code == 0 || slices.Contains(s.last, code) {
			return code
		}
	}
}

func TestASupervisedRunGoesOnAfterEachKillUntilTheJobEnds(t *testing.T) {
	onShops(t, func(t *testing.T, shop *migrationShop) {
		shop.fill(t, 3000)
		o := newOperator(t, shop)
		o.must(t, 0, "install")
		o.must(t, 0, "seed", "--margin", "1000000")
		unit := readUnit(t)
		if !slices.Equal(unit.args[:4], []string{"migrate", "run", "--config", "shards.json"}) {
			t.Fatalf("%q", unit.args)
		}
		started, ended := make(chan *command, 1), make(chan int, 1)
		go func() {
			code := -1
			defer func() { ended <- code }()
			code = o.keep(t, unit, started, "--chunk-rows", "100")
		}()
		stop := shop.writers(t, 2)
		defer stop()
		killed := 0
		for ; killed < 4; killed++ { // in the copy, and when all is copied
			c := <-started
			o.waitStatus(t, func(s fullStatus) bool {
				return s.Runner != nil && s.Runner.PID == int64(c.Process.Pid) && s.Runner.Leads && (killed < 3 || s.Phase == "following")
			})
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		last := <-started
		o.waitStatus(t, func(s fullStatus) bool { return s.Phase == "following" && s.Runner.PID == int64(last.Process.Pid) })
		stop()
		o.verify(t, last)
		o.must(t, 0, "cutover", "--max-pause", "1m")
		database.Exec(t, o.shards["b"], "UPDATE orders_03 SET note = 'on a shard'")
		o.must(t, 0, "finalize", "--yes")
		if code := <-ended; code != 0 {
			t.Errorf("the run ended with %d", code)
		}
		if s := o.status(t); s.Phase != "finalized" {
			t.Errorf("%+v", s)
		}
		// What no restart mends, ends it.
		if err := os.Remove(o.dir + "/shards.json"); err != nil {
			t.Fatal(err)
		}
		if code := o.keep(t, unit, make(chan *command, 1)); code != 2 {
			t.Errorf("without a file the run ended with %d", code)
		}
	})
}
