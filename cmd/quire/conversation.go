package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/quire-ai/quire/internal/chat"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/tokenizer"
)

// conversation is a talk with a model. One goroutine.
type conversation struct {
	cmd   *runCmd
	model *llm.Model
	out   io.Writer
	plain bool // out is a terminal: what could steer it is left out

	turns []turn
}

// turn is one message of a conversation.
type turn struct{ role, text string }

// lines is where a person types.
type lines interface {
	// ReadLine returns io.EOF when the person leaves.
	ReadLine() (string, error)
}

// once answers one prompt.
func (t *conversation) once(prompt string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	answer, err := t.answer(ctx, prompt)
	if !strings.HasSuffix(answer, "\n") {
		fmt.Fprintln(t.out)
	}
	return err
}

const chatHelp = `  /clear        forget the conversation
  /system TEXT  begin anew with this system message
  /help         this help
  /exit         leave; so does ^D
  ^C            stop an answer, or clear the line
Anything else goes to the model.
`

// chat answers line by line until the person leaves.
func (t *conversation) chat(in lines) error {
	fmt.Fprintf(t.out, "Talking to %s. /help lists what else can be typed.\n", t.model.Name)
	for {
		line, err := in.ReadLine()
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(t.out)
			return nil
		}
		if err != nil {
			return fmt.Errorf("read line: %w", err)
		}
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "/") {
			if t.command(line) {
				return nil
			}
			continue
		}
		if line == "" {
			continue
		}
		if err := t.reply(line); err != nil {
			return err
		}
	}
}

// command obeys a line that begins with a slash, and reports whether it ends the conversation.
func (t *conversation) command(line string) (leave bool) {
	name, rest, _ := strings.Cut(line, " ")
	switch name {
	case "/exit", "/quit", "/bye":
		return true
	case "/clear":
		t.turns = nil
		fmt.Fprintln(t.out, "The conversation is forgotten.")
	case "/system":
		t.turns, t.cmd.System = nil, strings.TrimSpace(rest)
		fmt.Fprintln(t.out, "The conversation begins anew.")
	case "/help":
		fmt.Fprint(t.out, chatHelp)
	default:
		fmt.Fprintf(t.out, "There is no %s.\n%s", name, chatHelp)
	}
	return false
}

// reply answers one line. ^C stops the answer; a conversation that no longer fits is said and the line is dropped.
func (t *conversation) reply(line string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	before := len(t.turns)
	_, err := t.answer(ctx, line)
	fmt.Fprint(t.out, "\n\n")
	if ctx.Err() != nil {
		return nil // what was said so far is part of the conversation
	}
	if e, ok := errors.AsType[*engine.TooLongError](err); ok {
		t.turns = t.turns[:before]
		fmt.Fprintf(t.out, "%v. /clear makes room.\n", e)
		return nil
	}
	return err
}

// answer asks the model, writes the answer as it comes and remembers both.
func (t *conversation) answer(ctx context.Context, text string) (string, error) {
	t.turns = append(t.turns, turn{"user", text})
	prompt, err := t.prompt(ctx)
	if err != nil {
		return "", err
	}
	params := t.cmd.sampling(t.model)
	if t.cmd.Seed == nil {
		var random [8]byte
		rand.Read(random[:])
		params.Seed = binary.LittleEndian.Uint64(random[:])
	}
	h, err := t.model.Engine.Submit(ctx, &engine.Request{
		Prompt: prompt, MaxTokens: t.cmd.MaxTokens, EOS: t.model.Tokenizer.EOG(), Sampling: params,
	})
	if err != nil {
		return "", err
	}
	var answer strings.Builder
	stream := engine.NewTextStream(h, t.model.Tokenizer.NewDetokenizer(true), engine.TextOptions{})
	for {
		d, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			answer.WriteString(d.Text)
			_, err = io.WriteString(t.out, t.shown(d.Text))
			if err == nil {
				continue
			}
		}
		t.turns = append(t.turns, turn{"assistant", answer.String()})
		return answer.String(), err
	}
}

// prompt turns the conversation into token ids: by the model's template, or the last text as it is.
func (t *conversation) prompt(ctx context.Context) ([]int32, error) {
	if t.cmd.Raw || t.model.Template == nil {
		return t.model.Tokenizer.Encode(t.turns[len(t.turns)-1].text, tokenizer.Options{AddSpecial: true, ParseSpecial: true}), nil
	}
	messages := make([]any, 0, len(t.turns)+1)
	if t.cmd.System != "" {
		messages = append(messages, message(turn{"system", t.cmd.System}))
	}
	for _, turn := range t.turns {
		messages = append(messages, message(turn))
	}
	text, err := t.model.Template.RenderConversation(ctx, &chat.Conversation{
		Messages: chat.FromGo(messages), AddGenerationPrompt: true, Special: t.model.SpecialTokens,
	}, chat.Options{Now: time.Now()})
	if err != nil {
		return nil, err
	}
	return t.model.Tokenizer.Encode(text, tokenizer.Options{ParseSpecial: true}), nil
}

func message(t turn) any {
	d := &chat.Dict{}
	d.Set("role", chat.Str(t.role))
	d.Set("content", chat.Str(t.text))
	return d
}

// shown is a text as it goes to a terminal: without the characters by which a model could steer it.
func (t *conversation) shown(text string) string {
	if !t.plain {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}
