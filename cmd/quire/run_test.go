package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/sched"
)

// typed is a person who types these lines and leaves.
type typed []string

func (l *typed) ReadLine() (string, error) {
	if len(*l) == 0 {
		return "", io.EOF
	}
	line := (*l)[0]
	*l = (*l)[1:]
	return line, nil
}

// talk plays a conversation with a tiny model and returns what was shown.
func talk(t *testing.T, cmd *runCmd, lines ...string) (shown string, turns []turn) {
	t.Helper()
	m, err := llm.Load(t.Context(), llm.Options{
		Model: "../../internal/model/testdata/tiny/llama_gqa/llama_gqa-q8_0.gguf", Threads: 1, KVCacheTokens: 2048, MaxModelLen: 256,
		Engine: engine.Config{Sched: sched.Config{MaxNumSeqs: 1}, LogInterval: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out strings.Builder
	c := &conversation{cmd: cmd, model: m, out: &out, plain: true}
	if err := c.chat((*typed)(&lines)); err != nil {
		t.Fatal(err)
	}
	return out.String(), c.turns
}

// TestConversation holds what is remembered, and what the lines with a slash do.
func TestConversation(t *testing.T) {
	cmd := &runCmd{MaxTokens: 4, Temperature: new(0.0)}
	shown, turns := talk(t, cmd, "hello", "", "  and  ", "/nothing", "/help")
	if len(turns) != 4 || turns[0] != (turn{"user", "hello"}) || turns[1].role != "assistant" || turns[2] != (turn{"user", "and"}) {
		t.Errorf("turns %v, want two of each", turns)
	}
	for _, want := range []string{"Talking to llama_gqa-q8_0.", "There is no /nothing.", "/clear        forget"} {
		if !strings.Contains(shown, want) {
			t.Errorf("shown %q, want %q in it", shown, want)
		}
	}
	if _, turns := talk(t, cmd, "hello", "/clear", "again", "/exit", "never"); len(turns) != 2 || turns[0].text != "again" {
		t.Errorf("after /clear and /exit the turns are %v", turns)
	}
	if _, turns := talk(t, cmd, "hello", "/system be brief"); len(turns) != 0 || cmd.System != "be brief" {
		t.Errorf("after /system the turns are %v, the system message %q", turns, cmd.System)
	}
}

// TestConversationTooLong holds that a line which no longer fits is told and dropped, and the conversation goes on.
func TestConversationTooLong(t *testing.T) {
	shown, turns := talk(t, &runCmd{MaxTokens: 4, Temperature: new(0.0)}, "hello", strings.Repeat("long ", 300), "short")
	if !strings.Contains(shown, "exceeds the") && !strings.Contains(shown, "exceed the context of 256. /clear makes room.") {
		t.Errorf("shown %q, want the limit", shown)
	}
	if len(turns) != 4 || turns[2].text != "short" {
		t.Errorf("turns %v, want the long line left out", turns)
	}
}

// TestShown holds that a model cannot steer the terminal it is shown on.
func TestShown(t *testing.T) {
	c := &conversation{plain: true}
	if got, want := c.shown("a\x1b[2Jb\r\n\tc\x07é\u009bd"), "a[2Jb\n\tcéd"; got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
}

// TestKeys holds that ^C clears the line instead of ending the input.
func TestKeys(t *testing.T) {
	got, err := io.ReadAll(&keys{Reader: strings.NewReader("ab\x03c\x03\x04")})
	if string(got) != "ab\x05\x15c\x05\x15\x04" || err != nil {
		t.Errorf("keys %q, %v", got, err)
	}
}

// TestLeave holds that an error of the terminal is told.
func TestLeave(t *testing.T) {
	c := &conversation{cmd: &runCmd{}, model: &llm.Model{}, out: io.Discard}
	if err := c.chat(broken{}); err == nil || !strings.Contains(err.Error(), "read line: no terminal") {
		t.Errorf("chat returned %v", err)
	}
}

type broken struct{}

func (broken) ReadLine() (string, error) { return "", errors.New("no terminal") }
