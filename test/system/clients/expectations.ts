import type { Framework } from './frameworks/framework.ts'
import type { LineKind } from './gateways.ts'
import { SCENARIOS, type Scenario } from './scenarios.ts'

/** A cell that does not simply work. */
export interface Exception {
  /** By name and endpoint; every client without it. */
  readonly clients?: readonly string[]
  readonly lines: readonly LineKind[]
  readonly scenarios: readonly Scenario[]
  /** Part of the message that the caller gets without a setting. */
  readonly refused: string
  /** Why the provider refuses it, if the gateway does not. */
  readonly because?: string
  /** The setting that makes it work, if there is one. */
  readonly setting?: string
  /** Its headers. */
  readonly headers?: Record<string, string>
  /** Whether the client's own option is part of it. */
  readonly own?: true
}

/** The message to a caller about a refusal by the provider. */
const BY_PROVIDER = 'The upstream does not accept a parameter of this request.'

const EXCEPTIONS: readonly Exception[] = [
  {
    clients: ['@ai-sdk/openai responses'],
    lines: ['open-models', 'anthropic'],
    scenarios: ['reasoning'],
    refused: 'There is no stored item with this id',
    setting: '`store: false`',
    own: true,
  },
  {
    clients: ['@ai-sdk/openai-compatible chat'],
    lines: ['openai', 'open-models'],
    scenarios: ['structured'],
    refused: BY_PROVIDER,
    because: "'messages' must contain the word 'json' in some form",
    setting: '`supportsStructuredOutputs: true`',
    own: true,
  },
  {
    clients: ['@ai-sdk/openai-compatible chat'],
    lines: ['anthropic'],
    scenarios: ['structured'],
    refused: 'No object generated',
    setting: '`supportsStructuredOutputs: true`',
    own: true,
  },
  {
    clients: ['Codex 0.171.0 responses'],
    lines: ['open-models'],
    scenarios: SCENARIOS,
    refused: 'has no counterpart for the tool',
    setting: '`X-Gateway-Unsupported: drop`',
    headers: { 'x-gateway-unsupported': 'drop' },
  },
  {
    clients: ['Codex 0.171.0 responses'],
    lines: ['gemini'],
    scenarios: ['tools'],
    refused: 'has no counterpart for the tool',
  },
  {
    // Of the caller's own protocol, the answer is relayed as it is, and these do not send its signature back.
    clients: [
      '@ai-sdk/openai `.chat` chat',
      '@langchain/openai chat',
      '@openai/agents chat',
      '@openrouter/ai-sdk-provider chat',
      'groq-sdk chat',
    ],
    lines: ['gemini'],
    scenarios: ['tools'],
    refused: BY_PROVIDER,
    because: 'is missing a thought_signature',
  },
  {
    clients: ['@openrouter/sdk chat'],
    lines: ['gemini'],
    scenarios: ['tools'],
    refused: 'Response validation failed',
  },
]

export const idOf = ({ name, speaks }: Framework): string => `${name} ${speaks}`

/** Returns the exception that a cell expects; undefined: it works as it is. */
export function exceptionOf(framework: Framework, line: LineKind, scenario: Scenario): Exception | undefined {
  return EXCEPTIONS.find(
    ({ clients, lines, scenarios }) =>
      (clients === undefined || clients.includes(idOf(framework))) &&
      lines.includes(line) &&
      scenarios.includes(scenario),
  )
}

/** The lines that do not get back what was thought, because the client keeps too little of it. */
const FORGETFUL: Readonly<Record<string, readonly LineKind[]>> = {
  // Its `stream()` keeps only the last piece of each thought.
  'openai chat': ['open-models', 'anthropic'],
  '@ai-sdk/openai `.chat` chat': ['open-models', 'anthropic'],
  // It does not know signatures.
  '@ai-sdk/openai-compatible chat': ['anthropic'],
  '@langchain/openai chat': ['open-models', 'anthropic'],
  '@openai/agents chat': ['open-models', 'anthropic'],
  // It drops `reasoning_content`.
  '@openrouter/sdk chat': ['open-models'],
  'groq-sdk chat': ['open-models', 'anthropic'],
}

export const forgets = (framework: Framework, line: LineKind): boolean =>
  FORGETFUL[idOf(framework)]?.includes(line) ?? false
