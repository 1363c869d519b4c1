package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/quire-ai/quire/internal/bench"
)

// benchServeCmd is quire bench serve. Flags, figures and the result file have the names of vllm bench serve.
type benchServeCmd struct {
	benchTarget  `embed:"" group:"Server"`
	benchPrompts `embed:"" group:"Prompts"`
	benchLoad    `embed:"" group:"Load"`
	benchResults `embed:"" group:"Results"`
}

// benchTarget says which server and how to ask it.
type benchTarget struct {
	Backend              string  `default:"openai" enum:"openai,openai-chat" help:"API: that of /v1/completions, or of chat completions."`
	BaseURL              string  `name:"base-url" default:"http://127.0.0.1:8000" help:"Address of the server."`
	Endpoint             string  `placeholder:"PATH" help:"Path, by default that of the backend."`
	Model                string  `env:"-" placeholder:"NAME" help:"Model to ask for; the first of /v1/models by default."`
	APIKey               string  `name:"api-key" env:"OPENAI_API_KEY" placeholder:"KEY" help:"Bearer token."`
	ExtraBody            string  `placeholder:"JSON" help:"More members for each request's body."`
	ReadyCheckTimeoutSec float64 `default:"600" placeholder:"SECONDS" help:"Time to wait for a first answer; 0 is none."`
}

// benchPrompts says what is asked.
type benchPrompts struct {
	DatasetName string `default:"random" enum:"random,sonnet,custom" help:"Common words, or the text or JSON lines at --dataset-path."`
	DatasetPath string `placeholder:"FILE" help:"sonnet: a text; custom: lines of {prompt, output_tokens}."`
	NumPrompts  int    `default:"100" help:"Requests to send."`
	InputLen    int    `default:"512" help:"Tokens of a prompt, for random and sonnet."`
	PrefixLen   int    `default:"0" help:"Tokens that all prompts begin with."`
	OutputLen   int    `default:"128" help:"Tokens of an answer."`
	IgnoreEOS   bool   `name:"ignore-eos" help:"Answers of exactly that length, past the model's own end."`
	Seed        uint64 `env:"-" default:"0" help:"Of prompts and arrivals."`
}

// benchLoad says how fast.
type benchLoad struct {
	RequestRate    float64 `default:"inf" help:"Arrivals a second; inf sends all at once."`
	Burstiness     float64 `default:"1" help:"Shape of the gaps: 1 is a Poisson process, less comes in bursts."`
	MaxConcurrency int     `placeholder:"N" help:"Most requests under way; no limit by default."`
	NumWarmups     int     `default:"0" help:"Requests before the measurement."`
}

// benchResults says what is reported, and where.
type benchResults struct {
	PercentileMetrics []string          `default:"ttft,tpot,itl" help:"Latencies to report: ttft, tpot, itl, e2el."`
	MetricPercentiles []float64         `default:"99" help:"Percentiles to report."`
	Goodput           []string          `placeholder:"METRIC:MS" help:"Goals for goodput, such as ttft:500."`
	SaveResult        bool              `help:"Write the result as JSON."`
	SaveDetailed      bool              `help:"Write it with each request's times and text."`
	ResultDir         string            `default:"." placeholder:"FOLDER" help:"Where to write it."`
	ResultFilename    string            `placeholder:"FILE" help:"Its name; made of label, rate, model and date by default."`
	Label             string            `placeholder:"TEXT" help:"Name of the run in the result."`
	Metadata          map[string]string `placeholder:"KEY=VALUE" mapsep:"," help:"Further members of the result."`
}

// Run puts the load on the server and prints the figures; after ^C, those of the requests answered until then.
func (cmd *benchServeCmd) Run(ctx context.Context, c *console) error {
	target, sel, err := cmd.parse()
	if err != nil {
		return err
	}
	if target.Model == "" {
		if target.Model, err = firstModel(ctx, target); err != nil {
			return fmt.Errorf("bench serve: no --model given, and %s/v1/models does not tell: %w", cmd.BaseURL, err)
		}
	}
	load := &bench.Load{
		Target: target, Rate: cmd.RequestRate, Burstiness: cmd.Burstiness, MaxConcurrency: cmd.MaxConcurrency,
		Warmups: cmd.NumWarmups, IgnoreEOS: cmd.IgnoreEOS, Seed: cmd.Seed,
	}
	if load.Items, err = cmd.items(ctx, target, c.Err); err != nil {
		return fmt.Errorf("bench serve: dataset %s: %w", cmd.DatasetName, err)
	}
	if cmd.ReadyCheckTimeoutSec > 0 {
		fmt.Fprintf(c.Err, "Waiting for a first answer of %s …\n", target.BaseURL)
		if _, err := load.WaitReady(ctx, time.Duration(cmd.ReadyCheckTimeoutSec*float64(time.Second))); err != nil {
			return fmt.Errorf("bench serve: %w", err)
		}
	}
	progress := mpb.New(mpb.WithOutput(c.Err))
	bar := progress.AddBar(int64(len(load.Items)), mpb.PrependDecorators(decor.CountersNoUnit("%d / %d requests")),
		mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO)))
	load.Finished = func(*bench.Record) { bar.Increment() }
	results, err := load.Run(ctx)
	bar.Abort(false)
	progress.Wait()
	if err != nil {
		return fmt.Errorf("bench serve: %w", err)
	}
	return cmd.report(c, target, results, sel)
}

// parse reads the flags that kong cannot.
func (cmd *benchServeCmd) parse() (*bench.Target, bench.Selection, error) {
	var faults []error
	positive := func(flag string, n int) {
		if n < 1 {
			faults = append(faults, fmt.Errorf("--%s %d: want at least 1", flag, n))
		}
	}
	positive("num-prompts", cmd.NumPrompts)
	positive("input-len", cmd.InputLen)
	positive("output-len", cmd.OutputLen)
	if cmd.RequestRate <= 0 || math.IsNaN(cmd.RequestRate) {
		faults = append(faults, fmt.Errorf("--request-rate %v: want a number above 0, or inf", cmd.RequestRate))
	}
	if !(cmd.Burstiness > 0) || math.IsInf(cmd.Burstiness, 1) {
		faults = append(faults, fmt.Errorf("--burstiness %v: want a number above 0", cmd.Burstiness))
	}
	target := &bench.Target{
		Client: bench.NewClient(), BaseURL: cmd.BaseURL, Endpoint: cmd.Endpoint, Backend: bench.Backend(cmd.Backend),
		Model: cmd.Model, APIKey: cmd.APIKey,
	}
	if cmd.ExtraBody != "" {
		if err := json.Unmarshal([]byte(cmd.ExtraBody), &target.Extra); err != nil {
			faults = append(faults, fmt.Errorf("--extra-body: want a JSON object: %w", err))
		}
	}
	sel := bench.Selection{Percentiles: cmd.MetricPercentiles, Detailed: cmd.SaveDetailed}
	for _, p := range cmd.MetricPercentiles {
		if !(0 <= p && p <= 100) {
			faults = append(faults, fmt.Errorf("--metric-percentiles %v: want 0 to 100", p))
		}
	}
	for _, name := range cmd.PercentileMetrics {
		metric, err := bench.ParseMetric(name)
		if err != nil {
			faults = append(faults, fmt.Errorf("--percentile-metrics: %w", err))
		}
		sel.Metrics = append(sel.Metrics, metric)
	}
	for _, goal := range cmd.Goodput {
		for _, part := range strings.Fields(goal) {
			g, err := bench.ParseGoal(part)
			if err != nil {
				faults = append(faults, fmt.Errorf("--goodput: %w", err))
			}
			sel.Goals = append(sel.Goals, g)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, sel, usageError{err.Error()}
	}
	return target, sel, nil
}

// items makes or reads the prompts.
func (cmd *benchServeCmd) items(ctx context.Context, target *bench.Target, log io.Writer) ([]bench.Item, error) {
	shape := bench.Shape{
		Seed: cmd.Seed, Prompts: cmd.NumPrompts, InputTokens: cmd.InputLen, PrefixTokens: cmd.PrefixLen, OutputTokens: cmd.OutputLen,
	}
	if cmd.DatasetName == "random" {
		return shape.Random(), nil
	}
	if cmd.DatasetPath == "" {
		return nil, usageError{"--dataset-path is missing"}
	}
	f, err := os.Open(cmd.DatasetPath)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if cmd.DatasetName == "custom" {
		return bench.ReadCustom(f, cmd.NumPrompts, cmd.OutputLen)
	}
	lines, err := bench.ReadLines(f)
	if err != nil {
		return nil, err
	}
	perByte, err := tokensPerByte(ctx, target, strings.Join(lines[:min(len(lines), 50)], "\n"))
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "The server counts %.3f tokens a byte in this text.\n", perByte)
	return shape.Sonnet(lines, func(text string) float64 { return perByte * float64(len(text)) }), nil
}

// tokensPerByte asks the server to read a sample, and takes the ratio from its count.
func tokensPerByte(ctx context.Context, target *bench.Target, sample string) (float64, error) {
	r := target.Send(ctx, &bench.Request{Prompt: sample, OutputTokens: 1, IgnoreEOS: true})
	if r.Err != nil {
		return 0, fmt.Errorf("sample request: %w", r.Err)
	}
	if r.PromptTokens == 0 {
		return 0.25, nil // the server gives no usage: four bytes a token is usual for English
	}
	return float64(r.PromptTokens) / float64(len(sample)), nil
}

// firstModel asks the server for its models.
func firstModel(ctx context.Context, target *bench.Target) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(target.BaseURL, "/")+"/v1/models", nil)
	if err != nil {
		return "", err
	}
	if target.APIKey != "" {
		get.Header.Set("Authorization", "Bearer "+target.APIKey)
	}
	resp, err := target.Client.Do(get)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var models struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&models); err != nil {
		return "", err
	}
	if len(models.Data) == 0 {
		return "", errors.New("empty list")
	}
	return models.Data[0].ID, nil
}

// report prints the figures and writes the result file.
func (cmd *benchServeCmd) report(c *console, target *bench.Target, results *bench.Results, sel bench.Selection) error {
	summary := results.Summarize(sel.Goals)
	d := bench.Description{
		Date: results.Start, Backend: target.Backend, Label: cmd.Label, Model: target.Model, NumPrompts: cmd.NumPrompts,
		Rate: cmd.RequestRate, Burstiness: cmd.Burstiness, MaxConcurrency: cmd.MaxConcurrency, Metadata: cmd.Metadata,
	}
	if err := summary.Print(c.Out, d, sel); err != nil {
		return err
	}
	if cmd.SaveResult || cmd.SaveDetailed {
		path := filepath.Join(cmd.ResultDir, cmd.resultName(d))
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := errors.Join(bench.WriteJSON(f, d, results, summary, sel), f.Close()); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		fmt.Fprintln(c.Err, "Result written to", path)
	}
	if fault := results.FirstError(); fault != nil {
		return fmt.Errorf("bench serve: %d of %d requests failed, the first with: %w", summary.Failed, len(results.Records), fault)
	}
	if results.Interrupted {
		return interruptedError{fmt.Sprintf("%d requests", len(results.Records))}
	}
	return nil
}

// resultName is vLLM's: label-rateqps-concurrencyN-model-date.json.
func (cmd *benchServeCmd) resultName(d bench.Description) string {
	if cmd.ResultFilename != "" {
		return cmd.ResultFilename
	}
	label, concurrency := cmd.Label, ""
	if label == "" {
		label = cmd.Backend
	}
	if cmd.MaxConcurrency > 0 {
		concurrency = "-concurrency" + strconv.Itoa(cmd.MaxConcurrency)
	}
	rate := strings.ToLower(strconv.FormatFloat(cmd.RequestRate, 'f', -1, 64))
	model := d.Model[strings.LastIndexByte(d.Model, '/')+1:]
	return fmt.Sprintf("%s-%sqps%s-%s-%s.json", label, strings.TrimPrefix(rate, "+"), concurrency,
		strings.ReplaceAll(model, ":", "-"), d.Date.Format("20060102-150405"))
}
