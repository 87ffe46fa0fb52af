import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  answer,
  type Exchange,
  eventsOf,
  exchange,
  MODES,
  type Mode,
  saidTo,
} from '../../support/exchange.ts'
import { type LineSeed, startGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { seededRandom } from './measures.ts'

const CALLS = 400
const AT_A_TIME = 40
const WORDS = ['one ', 'two ', 'three ', 'four ', 'five']
const TEXT = WORDS.join('')

describe('upstreams that die at random moments under load', () => {
  it('leave no caller waiting, and none with a truncated answer that looks whole', {
    timeout: 180_000,
  }, async () => {
    const random = seededRandom(7)
    const die = (res: ServerResponse): void => {
      if (random() < 0.5) res.socket?.resetAndDestroy()
      else res.socket?.destroy()
    }
    const perform = async (res: ServerResponse, mode: Mode): Promise<void> => {
      await sleep(random() * 4)
      if (random() < 0.25) return die(res)
      if (!mode.stream) {
        if (random() < 0.7) return answer(res, mode, TEXT)
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': 5000 })
        res.write('{"id":"chatcmpl-1","object":"chat')
        await sleep(random() * 4)
        return die(res)
      }
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const event of eventsOf(mode, WORDS)) {
        if (random() < 0.06) {
          // An event torn in the middle, and then nothing more.
          res.write(event.slice(0, Math.floor(random() * event.length)))
          return die(res)
        }
        res.write(event)
        if (random() < 0.3) await sleep(random() * 4)
      }
      res.end()
    }
    const protocols = ['openai', 'anthropic'] as const
    const upstreams = await Promise.all(
      protocols.map((protocol) =>
        startUpstream((res, { json }) => perform(res, { protocol, stream: json.stream === true })),
      ),
    )
    const lines = protocols.flatMap((protocol, i): LineSeed[] => {
      const line = { url: upstreams[i]?.url as string, protocol, circuit: { minimumCalls: 100_000 } }
      return [
        { ...line, id: `${protocol}-1` },
        { ...line, id: `${protocol}-2` },
      ]
    })
    const gateway = await startGateway({ lines })
    const tally = { whole: 0, envelope: 0, streamError: 0 }
    const judge = (mode: Mode, got: Exchange): void => {
      if (got.status !== 200) {
        assert.equal(got.broken, false)
        assert.equal(got.envelope().request_id, got.requestId)
        tally.envelope++
        return
      }
      const error = /"request_id":"req_/.test(got.text)
      if (!got.broken && !error) {
        assert.equal(saidTo(mode, got), TEXT)
        if (mode.stream) assert.match(got.text, /data: \[DONE\]|event: message_stop/)
        tally.whole++
        return
      }
      assert.ok(mode.stream && got.broken && error, `broken ${got.broken}, told ${error}: ${got.text}`)
      assert.doesNotMatch(got.text, /\[DONE\]|message_stop|"finish_reason":"|"stop_reason":"/)
      tally.streamError++
    }
    try {
      let started = 0
      const worker = async (): Promise<void> => {
        while (started < CALLS) {
          const mode = MODES[started++ % MODES.length] as Mode
          judge(mode, await exchange(gateway, mode))
        }
      }
      await Promise.all(Array.from({ length: AT_A_TIME }, worker))
      await until(() => gateway.openCalls.size === 0, 'the end of all calls')
    } finally {
      await gateway.close()
      for (const upstream of upstreams) await upstream.close()
    }
    assert.equal(tally.whole + tally.envelope + tally.streamError, CALLS)
    for (const [kind, count] of Object.entries(tally))
      assert.ok(count > 10, `${kind}: ${JSON.stringify(tally)}`)
  })
})
