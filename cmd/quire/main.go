// Command quire serves large language models on CPUs with the OpenAI API.
//
// Every command is a struct in a file of its own with a Run method; kong fills the struct from flags and from the
// environment, QUIRE_<FLAG> for each flag. The process ends with 0 on success, 1 on failure and 2 on wrong usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// The exit codes of the command line.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // as shells have it for ^C
)

// commands lists what quire can do, in the order help shows it.
type commands struct {
	Serve    serveCmd    `cmd:"" help:"Serve a model with the OpenAI API."`
	Run      runCmd      `cmd:"" help:"Talk to a model here in the terminal, or ask it once."`
	Pull     pullCmd     `cmd:"" help:"Fetch a model, verify it and print its path."`
	List     listCmd     `cmd:"" help:"Show the models that are here and those that can be pulled."`
	Inspect  inspectCmd  `cmd:"" help:"Show what is in a model file: metadata and tensors."`
	Tokenize tokenizeCmd `cmd:"" help:"Turn text into token ids, or ids into text."`
	Bench    benchCmd    `cmd:"" help:"Measure the engine, a server, or one under pressure."`
	Verify   verifyCmd   `cmd:"" help:"Compare a model's numbers with recorded logits and greedy text."`
	Doctor   doctorCmd   `cmd:"" help:"Show what this machine offers Quire, and what could be changed."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
	Sim      simCmd      `cmd:"" help:"Run the scheduler without a model: recorded schedules, plays."`
}

// console is the part of the process that a command talks to. Only main fills it with the real streams.
type console struct {
	In       io.Reader // read to its end by commands that accept a pipe
	Out, Err io.Writer // answers go to Out; progress, logs and complaints to Err
}

// usageError is a mistake in the command line that kong cannot see; it ends the process with exitUsage.
type usageError struct{ msg string }

func (e usageError) Error() string { return e.msg }

// interruptedError says how far a command got before ^C ended it; the process ends with exitInterrupted.
type interruptedError struct{ after string }

func (e interruptedError) Error() string { return "interrupted after " + e.after }

func main() {
	dropEmpty()
	os.Exit(run(os.Args[1:], &console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// dropEmpty takes a variable that is empty for one that is not set, as deployments that fill in templates mean it.
func dropEmpty() {
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "QUIRE_") && value == "" {
			os.Unsetenv(name)
		}
	}
}

// run parses args, runs the command they name and returns the exit code.
func run(args []string, c *console) int {
	var cmds commands
	code := -1
	parser, err := kong.New(&cmds,
		kong.Name("quire"),
		kong.Description("Serve large language models on CPUs with the OpenAI API.\n\n"+
			"quire serve              serve the default model on http://127.0.0.1:8000\n"+
			"quire run                chat with it here in the terminal"),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoAppDescFormat: true, FlagsLast: true}),
		kong.Writers(c.Out, c.Err),
		kong.DefaultEnvars("QUIRE"),
		kong.Exit(func(n int) { code = n }),
		kong.Bind(c),
		kong.BindSingletonProvider(interruptible),
	)
	if err != nil {
		return fail(c, err) // a wrong struct tag: caught by any test that runs a command
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help": // as many tools have it; no command is called so
		args = append(args[1:len(args):len(args)], "--help")
	}
	ctx, err := parser.Parse(args)
	if code >= 0 {
		return code // --help printed and asked to exit
	}
	if err != nil {
		return misuse(c, parser, err)
	}
	if err := ctx.Run(); err != nil {
		return fail(c, err)
	}
	return exitOK
}

// interruptible gives a command a context that ends with ^C or SIGTERM. A second signal ends the process at once.
// Commands that treat signals otherwise (serve drains, run stops one answer) do not ask for it.
func interruptible() (context.Context, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, nil
}

// misuse reports a command line that could not be understood, and where help is to be found.
func misuse(c *console, parser *kong.Kong, err error) int {
	name := parser.Model.Name
	if perr, ok := errors.AsType[*kong.ParseError](err); ok && perr.Context != nil && perr.Context.Selected() != nil {
		name = perr.Context.Selected().FullPath()
	}
	fmt.Fprintf(c.Err, "quire: %v\nRun \"%s --help\" for help.\n", err, name)
	return exitUsage
}

// fail reports why a command did not succeed and chooses the exit code.
func fail(c *console, err error) int {
	if _, ok := errors.AsType[interruptedError](err); !ok && errors.Is(err, context.Canceled) {
		fmt.Fprintln(c.Err, "quire: interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(c.Err, "quire: %v\n", err)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[interruptedError](err); ok {
		return exitInterrupted
	}
	return exitFailure
}
