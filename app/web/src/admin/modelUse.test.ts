import { expect, test } from "vitest";
import type { Completions, Embeddings, Model } from "../api/types";
import { proposedModels } from "./modelUse";

function read(model: string | null, input_tokens: number, num_model_requests = 1): Embeddings {
  return { model, input_tokens, num_model_requests } as Embeddings;
}

function wrote(model: string, uncached: number, cached: number, output: number, calls = 1): Completions {
  return {
    model,
    input_tokens: uncached + cached,
    input_uncached_tokens: uncached,
    input_cached_tokens: cached,
    output_tokens: output,
    num_model_requests: calls,
  } as Completions;
}

function model(generator: string | null, embedder: string): Model {
  return { generator, embedder } as Model;
}

test("models that made calls come first, most tokens first, and then the others", () => {
  const used = [read("minilm", 40), wrote("qwen", 30, 20, 10), read("minilm", 30), read("reader", 900), read(null, 9)];
  expect(proposedModels(used, [model("silent", "minilm"), model(null, "minilm"), model("qwen", "other")])).toEqual([
    { model: "reader", tokens: 900 },
    { model: "minilm", tokens: 70 },
    { model: "qwen", tokens: 60 },
    { model: "silent", tokens: null },
    { model: "other", tokens: null },
  ]);
});

test("a model without a call is none that was used", () => {
  expect(proposedModels([wrote("silent", 0, 0, 0, 0)], [model("silent", "minilm")])).toEqual([
    { model: "silent", tokens: null },
    { model: "minilm", tokens: null },
  ]);
});
