package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/tokenizer"
)

// tokenizeCmd turns text into token ids and back.
type tokenizeCmd struct {
	Text    []string `arg:"" optional:"" help:"Text, or ids with --decode; read from standard input if there is none."`
	Model   string   `short:"m" default:"smollm2:135m" placeholder:"NAME|FILE" help:"Model whose tokenizer to use (smollm2:135m)."`
	Decode  bool     `short:"d" help:"Turn ids into text."`
	Special bool     `help:"Take the text of special tokens, such as <|im_end|>, as those tokens; show them with --decode."`
	AddBOS  bool     `name:"add-bos" help:"Add the tokens that the model wants around a text."`
	Pieces  bool     `help:"Print a line for each token: its id and its text, quoted."`
}

// Help shows the uses.
func (tokenizeCmd) Help() string {
	return `Needs no more of the model than its vocabulary. Ids are printed on one line.

  quire tokenize 'Hello, world'
  quire tokenize --pieces < README.md
  quire tokenize 'Hello' | quire tokenize --decode`
}

// Run reads arguments or standard input and prints ids or text.
func (cmd *tokenizeCmd) Run(c *console) error {
	t, err := loadTokenizer(cmd.Model)
	if err != nil {
		return err
	}
	input := strings.Join(cmd.Text, " ")
	if len(cmd.Text) == 0 {
		data, err := io.ReadAll(c.In)
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		input = string(data)
	}
	out := bufio.NewWriter(c.Out)
	if cmd.Decode {
		err = cmd.decode(out, t, input)
	} else {
		cmd.encode(out, t, input)
	}
	return errors.Join(err, out.Flush())
}

func (cmd *tokenizeCmd) encode(out *bufio.Writer, t *tokenizer.Tokenizer, text string) {
	ids := t.Encode(text, tokenizer.Options{AddSpecial: cmd.AddBOS, ParseSpecial: cmd.Special})
	if cmd.Pieces {
		for _, id := range ids {
			fmt.Fprintf(out, "%d\t%q\n", id, t.Piece(id))
		}
		return
	}
	for i, id := range ids {
		if i > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(strconv.Itoa(int(id)))
	}
	out.WriteByte('\n')
}

func (cmd *tokenizeCmd) decode(out *bufio.Writer, t *tokenizer.Tokenizer, text string) error {
	text = strings.NewReplacer(",", " ", "[", " ", "]", " ").Replace(text) // as the API writes them
	detok := t.NewDetokenizer(!cmd.Special)
	for field := range strings.FieldsSeq(text) {
		id, err := strconv.ParseInt(field, 10, 32)
		if err != nil || id < 0 || int(id) >= t.VocabSize() {
			return fmt.Errorf("decode %q: not a token id of this model, which has 0 to %d", field, t.VocabSize()-1)
		}
		if cmd.Pieces {
			fmt.Fprintf(out, "%d\t%q\n", id, t.Piece(int32(id)))
			continue
		}
		out.WriteString(detok.Push(int32(id)))
	}
	if !cmd.Pieces {
		out.WriteString(detok.Flush())
	}
	return nil
}

// loadTokenizer reads the vocabulary of a model.
func loadTokenizer(ref string) (*tokenizer.Tokenizer, error) {
	path, err := locateModel(ref)
	if err != nil {
		return nil, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := tokenizer.FromGGUF(&f.Metadata)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return t, nil
}
