import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responsesAsChat } from '../../../lib/core/translate/responses-as-chat/index.ts'
import { message } from './requests.ts'

const ofMessage = (model: string) =>
  message.translate({ thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } }, model)
const ofResponse = (upstreamModel: string) =>
  responsesAsChat.request(
    { model: 'm', input: 'hi', reasoning: { effort: 'medium' } },
    { upstreamModel, defaultMaxTokens: 100 },
  )

describe('the effort that Claude Code and Codex always ask for', () => {
  for (const model of [
    'llama-3.3-70b-versatile',
    'meta-llama/llama-4-scout-17b-16e-instruct',
    'meta-llama/Llama-3.3-70B-Instruct-Turbo',
    'llama3.3:70b',
    'mixtral-8x7b-32768',
    'gemma2-9b-it',
    'gemma3:27b',
    'grok-3',
    'grok-4',
    'grok-4-0709',
    'grok-4-1-fast-reasoning',
    'x-ai/grok-4.20-0309-reasoning',
    'grok-code-fast-1',
  ]) {
    it(`is not told to ${model}, which refuses any`, () => {
      assert.equal(ofMessage(model).reasoning_effort, undefined)
      assert.equal(ofResponse(model).reasoning_effort, undefined)
    })
  }

  for (const model of [
    'openai/gpt-oss-120b',
    'gpt-oss:20b',
    'deepseek-r1-distill-llama-70b',
    'gemma4:12b',
    'grok-3-mini',
    'grok-4.3',
    'grok-4.20-multi-agent-0309',
    'grok-4.7',
    'grok-5',
    'gemini-3-pro',
    'qwen3-235b',
  ]) {
    it(`is told to ${model}`, () => {
      assert.equal(ofMessage(model).reasoning_effort, 'medium')
      assert.equal(ofResponse(model).reasoning_effort, 'medium')
    })
  }
})
