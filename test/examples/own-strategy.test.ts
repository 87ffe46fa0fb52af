import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createApp } from '../../examples/own-strategy/app.ts'
import { cheapestWithin } from '../../examples/own-strategy/cheapest-within.ts'
import type { Catalog } from '../../lib/core/catalog/index.ts'
import { LineRegistry } from '../../lib/middleware/route/index.ts'
import { loadConfig } from '../support/any-config.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { listen } from '../support/gateway.ts'
import { chat, lookUp, post } from '../support/gateway-process.ts'
import { answerJson, chatAnswer, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts'

/** Much more than an answer takes on a busy machine. */
const BOUND_MS = 1000

describe('a strategy of one’s own', () => {
  let bargain: ScriptedUpstream
  let express: ScriptedUpstream
  let server: Server
  let catalog: Catalog
  let lines: LineRegistry
  let url = ''
  const cleanUp = cleaningUp(afterEach)
  beforeEach(async () => {
    bargain = await startUpstream()
    cleanUp.after(() => bargain.close())
    express = await startUpstream()
    cleanUp.after(() => express.close())
    const line = (id: string, upstream: ScriptedUpstream, outputPerMillion: string) => ({
      id,
      provider: id,
      protocol: 'openai',
      baseUrl: `${upstream.url}/v1`,
      models: { 'chat-small': 'u' },
      price: { outputPerMillion },
    })
    ;({ catalog } = loadConfig({
      models: [{ id: 'chat-small', kind: 'chat' }],
      // The dearer one stands first, so that the order of the config is not taken for the strategy.
      lines: [line('express', express, '0.40'), line('bargain', bargain, '0.10')],
    }))
    lines = new LineRegistry()
    cleanUp.after(() => lines.close())
    server = await listen(createApp({ catalog, lines, boundMs: BOUND_MS }))
    cleanUp.after(() => server.close().closeAllConnections())
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })

  /** Notes how long the first byte of a line's last answer took, as an answer does. */
  const took = (ms: number, id: string) => {
    for (const line of catalog.lines) if (line.id === id) lines.stateOf(line).observeFirstByte(ms)
  }
  /** Asks once; the ids of the lines that were tried. */
  const ask = async (): Promise<readonly string[]> => {
    const answer = await post(url, chat())
    assert.equal(answer.status, 200)
    const { routing } = await lookUp(url, answer.headers.get('x-request-id'))
    assert.equal(routing?.strategy, 'cheapestWithin')
    return routing?.attempts.map(({ line }) => line) ?? []
  }

  it('asks the cheapest line as long as it is fast enough', async () => {
    for (let i = 0; i < 4; i++) assert.deepEqual(await ask(), ['bargain'])
    assert.equal(express.requests.length, 0)
  })

  it('asks a dearer one once the cheapest was too slow', async () => {
    bargain.script = async (res) => {
      await sleep(2 * BOUND_MS)
      chatAnswer(res)
    }
    assert.deepEqual(await ask(), ['bargain'])
    assert.deepEqual(await ask(), ['express'])
    assert.deepEqual(await ask(), ['express'])
    assert.equal(bargain.requests.length, 1)
  })

  it('asks the fastest first where none is fast enough', async () => {
    took(30 * BOUND_MS, 'bargain')
    took(20 * BOUND_MS, 'express')
    assert.deepEqual(await ask(), ['express'])
    took(40 * BOUND_MS, 'express')
    assert.deepEqual(await ask(), ['bargain'])
  })

  it('leaves slow lines to fall back on', async () => {
    took(20 * BOUND_MS, 'bargain')
    express.script = (res) => answerJson(res, 500, { error: { message: 'broken' } })
    assert.deepEqual(await ask(), ['express', 'bargain'])
  })

  it('rejects an unusable bound at once', () => {
    for (const bound of [0, -1, Number.NaN]) assert.throws(() => cheapestWithin(bound), RangeError)
  })
})
