import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import type { Exception } from './expectations.ts'
import type { Ask, Framework, Reply } from './frameworks/framework.ts'
import { costOf, type LineGateway, type LineKind } from './gateways.ts'
import {
  AND_NOW,
  FILE_QUESTION,
  FILLED,
  FORM_QUESTION,
  HELLO,
  IMAGE,
  PDF,
  QUESTION,
  type Scenario,
  seen,
  WEATHER_ANSWER,
  WEATHER_QUESTION,
} from './scenarios.ts'
import type { Usage } from './twins/script.ts'

interface Part {
  readonly ask: Omit<Ask, 'streamed'>
  /** Whether it is asked without a stream, with one, or once each way. */
  readonly ways: readonly boolean[]
  readonly says?: string
  readonly fills?: unknown
  /** Exchanges with the line for each way. */
  readonly turns: number
}

const file = (type: 'image/png' | 'application/pdf', bytes: Buffer): Part => ({
  ask: { questions: [FILE_QUESTION], file: { type, bytes } },
  ways: [false],
  says: seen(type, bytes.length),
  turns: 1,
})
const loop = (thinks: boolean): Part => ({
  ask: { questions: [WEATHER_QUESTION, AND_NOW], tools: true, thinks },
  ways: [false, true],
  says: WEATHER_ANSWER,
  turns: 4,
})

const PARTS: Record<Scenario, Part> = {
  plain: { ask: { questions: [QUESTION] }, ways: [false], says: HELLO, turns: 1 },
  stream: { ask: { questions: [QUESTION] }, ways: [true], says: HELLO, turns: 1 },
  tools: loop(false),
  structured: { ask: { questions: [FORM_QUESTION], form: true }, ways: [false], fills: FILLED, turns: 1 },
  reasoning: loop(true),
  image: file('image/png', IMAGE),
  pdf: file('application/pdf', PDF),
}

/** A client on a line in a scenario, and what is expected of it. */
export interface Cell {
  readonly framework: Framework
  readonly line: LineKind
  readonly scenario: Scenario
  /** Undefined: it works as it is. */
  readonly exception: Exception | undefined
  /** Whether the client loses what was thought on the way. */
  readonly forgets: boolean
}

/**
 * Takes a client through a scenario, with the setting of its exception or as it is, and checks all that can be seen of it.
 * Whether it fails or not, what was answered must have been metered and charged once.
 *
 * @returns what the client throws, or what is not as it should be; undefined: it works.
 */
export async function failureOf(
  cell: Cell,
  gateway: LineGateway,
  apiKey: string,
  isSet: boolean,
): Promise<unknown> {
  gateway.twin.clear()
  const failure = await takeThrough(cell, gateway, apiKey, isSet).then(
    () => undefined,
    (error: unknown) => error,
  )
  await checkBill(gateway, apiKey)
  return failure
}

async function takeThrough(
  { framework, scenario, exception, forgets }: Cell,
  { url, twin }: LineGateway,
  apiKey: string,
  isSet: boolean,
): Promise<void> {
  const { ask, ways, says, fills, turns } = PARTS[scenario]
  const given = framework.alwaysStreams ? [true] : ways
  const { headers = {}, own = false } = (isSet && exception) || {}
  const place = { url, apiKey, headers, isSet: own, model: framework.model }
  let kept = true
  for (const streamed of given) {
    const reply: Reply = await framework.ask({ ...ask, streamed }, place)
    if (says !== undefined) assert.equal(reply.text, says)
    if (fills !== undefined) assert.deepEqual(reply.form, fills)
    kept &&= keepsThoughts(twin.answered)
    if (streamed && says !== undefined) assert.ok(reply.pieces > 1, 'the text came in one piece')
  }
  assert.deepEqual(twin.refusals, [])
  const reads = ask.file && framework.readsFiles ? 1 : 0
  assert.equal(twin.requests.length, given.length * (turns + reads))
  if (ask.thinks) assert.equal(kept, !forgets, 'what was thought comes back')
}

/** Checks that each answer was metered and charged once, and nothing else was. */
async function checkBill({ twin, bill }: LineGateway, apiKey: string): Promise<void> {
  const { completed, spent } = await bill(apiKey, twin.answered.length)
  assert.equal(completed.length, twin.answered.length)
  for (const { usage } of completed) assert.equal(usage?.source, 'measured')
  assert.equal(Math.round(Number(spent) * 1e9), costOf(twin.answered))
}

/** Whether the last turn came with what was thought in each turn before, where that is shown at all. */
function keepsThoughts(answered: readonly Usage[]): boolean {
  const last = answered.at(-1)
  return last === undefined || !last.shown || last.thoughts === 3
}

/** All that an error says, with what it was caused by. */
export const wordsOf = (error: unknown): string => inspect(error, { depth: 6 })
