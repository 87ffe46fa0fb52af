import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  hasAdaptiveThinking,
  omitsThinking,
  takesDisabledThinking,
  takesForcedTool,
  takesPrefill,
  takesSampling,
  thinksByDefault,
} from '../../../lib/core/translate/chat-as-messages/claude-models.ts'

/** What came with 4.6, 4.7, 5 and 5.1, and whether thinking can be turned off. */
function told(model: string): string {
  assert.equal(takesPrefill(model), !hasAdaptiveThinking(model))
  assert.equal(takesSampling(model), !omitsThinking(model))
  const facts = {
    adaptive: hasAdaptiveThinking(model),
    summarized: omitsThinking(model),
    thinks: thinksByDefault(model),
    off: thinksByDefault(model) && takesDisabledThinking(model),
    unforced: !takesForcedTool(model),
  }
  return Object.entries(facts)
    .filter(([, holds]) => holds)
    .map(([name]) => name)
    .join(' ')
}

describe('what a model of Anthropic’s takes, by its name:', () => {
  const MODELS: [model: string, facts: string][] = [
    ['claude-3-5-haiku-20241022', ''],
    ['claude-3-7-sonnet-20250219', ''],
    ['claude-sonnet-4-20250514', ''],
    ['claude-opus-4', ''],
    ['claude-opus-4-5', ''],
    ['claude-opus-4-5-20251101', ''],
    ['claude-opus-4-6', 'adaptive'],
    ['claude-opus-4.6', 'adaptive'],
    ['claude-opus-4-6-20260101', 'adaptive'],
    ['claude-opus-4-60', ''],
    ['claude-opus-4-20260606', ''],
    ['claude-opus-4-7', 'adaptive summarized'],
    ['claude-opus-4.7-fast', 'adaptive summarized'],
    ['claude-opus-4-9', 'adaptive summarized'],
    ['claude-opus-4-70', ''],
    ['us.anthropic.claude-opus-4-8-v1:0', 'adaptive summarized'],
    ['claude-opus-5', 'adaptive summarized thinks off'],
    ['claude-sonnet-5-20260630', 'adaptive summarized thinks off'],
    ['claude-haiku-5', 'adaptive summarized thinks'],
    ['claude-fable-5', 'adaptive summarized thinks'],
    ['claude-opus-5-1', 'adaptive summarized thinks unforced'],
    ['claude-sonnet-5.9', 'adaptive summarized thinks unforced'],
    ['claude-opus-5-0', 'adaptive summarized thinks'],
    ['claude-haiku-5-5', 'adaptive summarized thinks off unforced'],
    ['claude-haiku-5.5', 'adaptive summarized thinks off unforced'],
    ['claude-haiku-5-55', 'adaptive summarized thinks'],
    ['claude-opus-6', 'adaptive summarized thinks unforced'],
    ['claude-opus-9', 'adaptive summarized thinks unforced'],
    ['claude-opus-10', 'adaptive summarized thinks unforced'],
    ['claude-opus-10-1', 'adaptive summarized thinks unforced'],
    ['claude-opus-99', 'adaptive summarized thinks unforced'],
    ['claude-opus-100', ''],
    ['claude-opus-500', ''],
    ['claude-mythos-preview', 'unforced'],
    ['claude-5', ''],
    ['opus-5', ''],
    ['other', ''],
  ]
  for (const [model, facts] of MODELS) it(model, () => assert.equal(told(model), facts))
})
