import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { chatBody, KEY, startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  answerJson,
  chatEvents,
  type ScriptedUpstream,
  startUpstream,
} from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { activeResources, heldBytes, seededRandom } from './measures.ts'

const STREAMS = 1000
const AT_A_TIME = 50
const SEED = 20_260_101
const EVENTS = chatEvents(['one ', 'two ', 'three ', 'four ', 'five'])

/** When a caller leaves. Each is reached by waiting for what a caller can see, or for a random while. */
const MOMENTS = ['before the head', 'between chunks', 'while held', 'in failover', 'after the end'] as const
type Moment = (typeof MOMENTS)[number]

const random = seededRandom(SEED)
const pause = (): Promise<void> => sleep(random() * 8)

interface Stage {
  readonly gateway: TestGateway
  readonly upstreams: readonly ScriptedUpstream[]
  /** Upstream responses that have not ended. */
  readonly running: ReadonlySet<ServerResponse>
  /** How the calls of each moment ended. */
  readonly ends: Map<string, number>
}

async function setStage(): Promise<Stage> {
  const running = new Set<ServerResponse>()
  const ends = new Map<string, number>()
  const perform = async (res: ServerResponse): Promise<void> => {
    await pause()
    if (res.destroyed) return
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of EVENTS) {
      if (res.destroyed) return
      res.write(event)
      if (random() < 0.6) await pause()
    }
    res.end()
  }
  const upstream = (failing: boolean) =>
    startUpstream((res, { json }) => {
      running.add(res)
      res.on('close', () => running.delete(res))
      return failing && json.user === 'in failover' ? answerJson(res, 500, {}) : perform(res)
    })
  const upstreams = [await upstream(true), await upstream(false)]
  const gateway = await startGateway({
    lines: upstreams.map(({ url }) => ({ url, circuit: { minimumCalls: 100_000 } })),
    route: {
      strategy: (candidates, call) => {
        // Settling takes its time, as with a database behind it, so that callers can leave meanwhile.
        call.onSettle(pause)
        const user = call.request?.body.json.user
        call.onEnd('count', () => {
          const end = `${user}: ${call.outcome?.finish}`
          ends.set(end, (ends.get(end) ?? 0) + 1)
        })
        return [...candidates]
      },
    },
  })
  return { gateway, upstreams, running, ends }
}

/** Opens a stream and leaves at the moment named, by a reset or a regular close. */
async function openAndLeave({ gateway }: Stage, moment: Moment): Promise<void> {
  const body = JSON.stringify(chatBody({ stream: true, user: moment }))
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    'host: gateway',
    `authorization: Bearer ${KEY}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  let received = ''
  const seen = async (text: string): Promise<void> => {
    while (!received.includes(text) && !socket.destroyed) await sleep(1)
  }
  socket.setEncoding('latin1').on('error', () => {})
  socket.on('data', (chunk: string) => {
    received += chunk
  })
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  if (moment === 'between chunks') await seen('one ')
  if (moment === 'while held') await seen('five')
  if (moment === 'after the end') await seen('\r\n0\r\n\r\n')
  else await sleep(random() * (moment === 'in failover' ? 20 : 6))
  if (random() < 0.5) socket.resetAndDestroy()
  else socket.destroy()
  await closed
}

async function openMany(stage: Stage, streams: number): Promise<void> {
  let opened = 0
  const worker = async (): Promise<void> => {
    while (opened < streams) await openAndLeave(stage, MOMENTS[opened++ % MOMENTS.length] as Moment)
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, worker))
  await until(() => stage.gateway.openCalls.size === 0, 'the end of all calls')
  await until(() => stage.running.size === 0, 'the end of all upstream requests')
  for (const { requests } of stage.upstreams) requests.length = 0
}

describe(`${STREAMS} streams opened and abandoned at random moments`, () => {
  it('leave no call, connection, timer, listener or memory behind', { timeout: 180_000 }, async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error): void => void warnings.push(warning)
    process.on('warning', onWarning)
    const resourcesBefore = activeResources()
    const stage = await setStage()
    const { gateway, ends } = stage
    // Objects that are made once and kept (pools, caches, compiled code) are there before measuring.
    await openMany(stage, 400)
    const heldBefore = await heldBytes()
    ends.clear()
    await openMany(stage, STREAMS)
    const grown = (await heldBytes()) - heldBefore
    for (const line of gateway.config.catalog.lines) {
      assert.equal(gateway.lines.status(line).in_flight, 0)
      assert.equal(
        gateway.lines.status(line).circuit,
        'closed',
        'a caller that leaves is no fault of the line',
      )
    }
    // The log of the calls is kept, and stays far below what a leaked call or connection would hold.
    assert.ok(grown < STREAMS * 3000, `${grown} bytes more after ${STREAMS} streams`)
    assert.deepEqual(gateway.logged, [])

    await gateway.close()
    for (const upstream of stage.upstreams) await upstream.close()
    const left = (): string => JSON.stringify(activeResources())
    await until(() => left() === JSON.stringify(resourcesBefore), 'the end of all resources').catch(() => {})
    assert.equal(left(), JSON.stringify(resourcesBefore))
    assert.deepEqual(warnings, [])
    process.off('warning', onWarning)

    // A few leave before their request was read at all.
    const routed = [...ends.values()].reduce((sum, count) => sum + count)
    assert.ok(routed <= STREAMS && routed > STREAMS * 0.9, JSON.stringify([...ends]))
    assert.equal(ends.get('after the end: completed'), STREAMS / MOMENTS.length)
    for (const moment of MOMENTS.slice(0, -1)) {
      assert.ok((ends.get(`${moment}: interrupted`) ?? 0) > 20, JSON.stringify([...ends]))
    }
  })
})
