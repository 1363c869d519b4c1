package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"strings"

	"golang.org/x/term"

	"github.com/quire-ai/quire/internal/config"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/sched"
)

// runCmd talks to a model in the terminal.
type runCmd struct {
	Name   string   `arg:"" optional:"" name:"model" placeholder:"MODEL" help:"Model to load; smollm2:135m by default."`
	Prompt []string `arg:"" optional:"" help:"What to ask; without it, standard input, or a conversation on a terminal."`

	System string `placeholder:"TEXT" help:"Message that goes before the conversation."`
	Raw    bool   `help:"Continue the prompt as it is, without the chat template."`

	Temperature       *float64 `group:"Sampling" placeholder:"T" help:"0 takes the likeliest token; by default as the model advises, or 0.7."`
	TopK              *int     `group:"Sampling" placeholder:"K" help:"Choose among the K likeliest tokens; 0 is off."`
	TopP              *float64 `group:"Sampling" placeholder:"P" help:"Choose among the likeliest tokens that make up this probability."`
	MinP              *float64 `group:"Sampling" placeholder:"P" help:"Leave out tokens less probable than this share of the likeliest."`
	RepetitionPenalty *float64 `group:"Sampling" placeholder:"R" help:"Above 1 makes words that were used less likely."`
	Seed              *uint64  `group:"Sampling" placeholder:"N" help:"The same seed gives the same answer."`
	MaxTokens         int      `group:"Sampling" placeholder:"N" help:"Longest answer; what the context holds by default."`

	MaxModelLen  int    `group:"Model" placeholder:"TOKENS" help:"Longest conversation; the model's context by default."`
	ChatTemplate string `group:"Model" placeholder:"FILE" help:"Jinja template to use instead of the model's own."`
	config.CPU   `embed:"" group:"CPU"`
}

// Help shows the uses.
func (runCmd) Help() string {
	return `On a terminal this is a conversation: /help lists what can be typed, ^C stops an answer. With a prompt, or a pipe,
one answer goes to standard output. A first argument with a space in it is a prompt for the default model.

  quire run
  quire run 'Why is the sky blue?'
  quire run gemma3:270m --temperature 0 'Name three rivers.'
  git diff | quire run smollm2:135m 'Write a commit message for this:'`
}

// Run loads the model and answers once, or until the conversation ends.
func (cmd *runCmd) Run(c *console) error {
	if strings.ContainsAny(cmd.Name, " \n") {
		cmd.Prompt, cmd.Name = append([]string{cmd.Name}, cmd.Prompt...), ""
	}
	prompt, interactive, err := cmd.prompt(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	m, err := cmd.load(ctx, c)
	stop()
	if err != nil {
		return err
	}
	talk := &conversation{cmd: cmd, model: m, out: c.Out, plain: isTerminal(c.Out)}
	if interactive {
		err = talk.chat(newTerminal(c))
	} else {
		err = talk.once(prompt)
	}
	return errors.Join(err, m.Close())
}

// prompt is what to ask, or interactive if a person is there to ask.
func (cmd *runCmd) prompt(c *console) (prompt string, interactive bool, err error) {
	prompt = strings.Join(cmd.Prompt, " ")
	if isTerminal(c.In) {
		return prompt, prompt == "", nil
	}
	piped, err := io.ReadAll(c.In)
	if err != nil {
		return "", false, fmt.Errorf("read standard input: %w", err)
	}
	if text := strings.TrimSpace(string(piped)); text != "" && prompt != "" {
		prompt += "\n\n" + text
	} else if text != "" {
		prompt = text
	}
	if prompt == "" {
		return "", false, usageError{"there is nothing to ask: give a prompt, or text on standard input"}
	}
	return prompt, false, nil
}

// load brings the model into memory, with room for one conversation.
func (cmd *runCmd) load(ctx context.Context, c *console) (*llm.Model, error) {
	template, err := readTemplate(cmd.ChatTemplate)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(cmd.Name, defaultModel)
	models, err := bring(ctx, c.Err, name)
	if err != nil {
		return nil, err
	}
	return llm.Load(ctx, llm.Options{
		Model: name, Catalog: models, CPU: cmd.CPU.CPU, Threads: cmd.Threads, MaxModelLen: cmd.MaxModelLen, ChatTemplate: template,
		Engine: engine.Config{Sched: sched.Config{MaxNumSeqs: 1}, LogInterval: -1},
		Log:    newLogger(c.Err, &config.Log{LogLevel: slog.LevelWarn.String()}),
	})
}

// sampling is how tokens are chosen: as the flags say, else as the model's file recommends, else in a way that suits a
// talk with a small model.
func (cmd *runCmd) sampling(m *llm.Model) sample.Params {
	p := m.Sampling
	if reflect.DeepEqual(p, sample.Default()) {
		p.Temperature, p.TopP, p.RepetitionPenalty = 0.7, 0.9, 1.1
	}
	set(&p.RepetitionPenalty, cmd.RepetitionPenalty)
	set(&p.Temperature, cmd.Temperature)
	set(&p.TopK, cmd.TopK)
	set(&p.TopP, cmd.TopP)
	set(&p.MinP, cmd.MinP)
	set(&p.Seed, cmd.Seed)
	return p
}

func set[T any](p *T, v *T) {
	if v != nil {
		*p = *v
	}
}

// isTerminal reports whether a person is at the other end of a stream.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
