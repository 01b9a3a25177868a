package unit

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child/logfile"
	"understudy/supervisor/config"
	"understudy/supervisor/safefile"
	"understudy/supervisor/wait"
)

// logs are the files that a service's programs write to, by their paths. They stay open from one start to the next.
type logs struct {
	files map[string]*logfile.Log
	confs map[string]config.LogFile
	ends  map[string]context.CancelFunc // end the waiting for previous programs' output
	wg    sync.WaitGroup

	unlogged func(why string) // as Config.Unlogged; nil: nobody asks
}

// open returns the file; programs write to it until close.
func (l *logs) open(ctx context.Context, reach *wait.Reach, conf config.LogFile, who safefile.Who, log hclog.Logger) (*logfile.Log, error) {
	return l.openWith(ctx, reach, conf, who, log, func(c logfile.Config) (*logfile.Log, error) {
		if err := conf.Folder(); err != nil && c.To == nil {
			return nil, err
		}
		return logfile.Open(c)
	})
}

func (l *logs) openWith(
	ctx context.Context, reach *wait.Reach, conf config.LogFile, who safefile.Who, log hclog.Logger,
	open func(logfile.Config) (*logfile.Log, error),
) (*logfile.Log, error) {
	if f := l.files[conf.File]; f != nil {
		f.Reconfigure(who, int64(conf.MaxSize), conf.Keep)
		l.confs[conf.File] = conf
		return f, nil
	}
	failing := func(err error) {
		switch {
		case l.unlogged == nil:
		case err != nil:
			l.unlogged(conf.File + ": " + err.Error())
		default:
			l.unlogged("")
		}
	}
	f, err := wait.Reached(ctx, reach, func() (*logfile.Log, error) {
		return open(logfile.Config{
			Path: conf.File, To: ownOutput(conf.File), Who: who, Logger: log.Named("log"),
			MaxSize: int64(conf.MaxSize), Keep: conf.Keep, Failing: failing,
		})
	}, func(f *logfile.Log) { _ = f.Close() })
	if err != nil {
		return nil, err
	}
	if l.files == nil {
		l.files, l.confs, l.ends = map[string]*logfile.Log{}, map[string]config.LogFile{}, map[string]context.CancelFunc{}
	}
	pumping, end := context.WithCancel(context.WithoutCancel(ctx))
	l.files[conf.File], l.confs[conf.File], l.ends[conf.File] = f, conf, end
	l.wg.Go(func() {
		defer end()
		defer failing(nil)
		if err := f.Run(pumping); err != nil {
			log.Warn("a log file has ended early", "file", conf.File, "error", err)
		}
	})
	return f, nil
}

// retain closes the files that are in no program's config any more. No program that holds one may be alive.
func (l *logs) retain(programs []config.Process) error {
	wanted := map[string]bool{}
	for _, p := range programs {
		wanted[p.Log.File] = true
	}
	var errs []error
	for path, f := range l.files {
		if wanted[path] || len(programs) > 0 && ownOutput(path) != nil {
			continue
		}
		if err := f.CloseWriter(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", path, err))
		}
		l.ends[path]() // a process that still holds the pipe is not ours: do not wait for it
		delete(l.files, path)
		delete(l.confs, path)
		delete(l.ends, path)
	}
	return errors.Join(errs...)
}

// close closes all files, and waits until they hold all output.
func (l *logs) close() error {
	err := l.retain(nil)
	l.wg.Wait()
	return err
}
