import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api'
import type { Express, RequestHandler } from 'express'
import type { Logger } from '../../../lib/core/call/index.ts'
import { StoreAway, StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { systemClock } from '../../../lib/ledger/pool/clock.ts'
import { LedgerHealth } from '../../../lib/ledger/pool/ledger-health.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope, unknownPath } from '../../../lib/middleware/error-envelope/index.ts'
import { telemetry } from '../../../lib/middleware/telemetry/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import {
  type FaultState,
  FUNCTION_FAULTS,
  isFailure,
  LATE_MS,
  noteUser,
  nothingUnhandled,
  withFault,
} from './own-store-faults.ts'

/** The observers, each with a fault. A call goes on as if they were not there. */
const OBSERVERS: Record<string, (state: FaultState, faulty: () => unknown) => RequestHandler[]> = {
  'a logger': (_state, faulty) => {
    const logger = { info: faulty, warn: faulty, error: faulty } as Logger
    return [
      beginCall({ logger }),
      (req, _res, next) => next(req.headers['x-user'] === 'mine' && new Error('x')),
    ]
  },
  onBegin: (_state, faulty) => [beginCall({ logger: recordingLogger(), onBegin: faulty })],
  telemetry: (_state, faulty) => {
    metrics.disable()
    metrics.setGlobalMeterProvider({ getMeter: () => instruments(faulty) } as unknown as MeterProvider)
    return [telemetry()]
  },
  'a tracer': (_state, faulty) => {
    trace.disable()
    trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan: faulty }) } as unknown as TracerProvider)
    return [telemetry()]
  },
}

/** A meter, each operation of whose instruments is `faulty`. */
function instruments(faulty: () => unknown): object {
  const instrument = new Proxy({}, { get: () => faulty })
  return new Proxy({}, { get: () => () => instrument })
}

describe('an observer', () => {
  nothingUnhandled()
  after(() => {
    metrics.disable()
    trace.disable()
  })

  for (const [name, mount] of Object.entries(OBSERVERS)) {
    for (const [what, fault] of Object.entries(FUNCTION_FAULTS)) {
      // Nothing of a tracer is a promise.
      if (name === 'a tracer' && what.startsWith('rejects')) continue
      it(`costs a call nothing: ${name} ${what}`, async (t) => {
        const state: FaultState = { fault: undefined }
        const { work } = withFault({ work: () => undefined as unknown }, 'work', state)
        const handlers = mount(state, work)
        const server = await serveApp((app: Express) => {
          app.use(noteUser, beginCallUnless(name), ...handlers)
          app.get('/', (_req, res) => void res.json({ ok: true }))
          app.use(unknownPath(), errorEnvelope())
        })
        t.after(() => server.close())
        state.fault = fault
        const [mine, other] = await Promise.all(
          ['mine', 'other'].map(async (user) => {
            const response = await fetch(server.url, { headers: { 'x-user': user } })
            return { status: response.status, body: (await response.json()) as { error?: { code: string } } }
          }),
        )
        assert.deepEqual(other, { status: 200, body: { ok: true } })
        const refuses = name === 'a logger' || (name === 'onBegin' && what.startsWith('throws'))
        assert.equal(mine?.status, refuses ? 500 : 200)
        if (refuses) assert.equal(mine?.body.error?.code, 'internal_error', 'the envelope')
        await sleep(LATE_MS + 50)
      })
    }
  }

  for (const [what, fault] of Object.entries(FUNCTION_FAULTS)) {
    it(`costs an outage nothing: onStoreChange and onStoreChange, each of which ${what}`, async () => {
      const logger = recordingLogger()
      let told = 0
      const onStoreChange = () => {
        told++
        return fault() as undefined
      }
      const guard = new StoreGuard({ name: 's', logger, probeMs: 1, onStoreChange })
      await assert.rejects(
        guard.run(() => Promise.reject(new Error('down'))),
        StoreAway,
      )
      await sleep(5)
      assert.equal(await guard.run(async () => 'back'), 'back')
      const health = new LedgerHealth({
        clock: systemClock,
        logger,
        times: { stallMs: 1 },
        onStoreChange,
      })
      health.late()
      health.answered()
      await sleep(LATE_MS + 50)
      assert.equal(told, 4)
      const failed = logger.lines.filter(({ message }) => message.startsWith('a listener to '))
      assert.equal(failed.length, isFailure(what) && what !== 'never settles' ? 4 : 0)
    })
  }
})

function beginCallUnless(name: string): RequestHandler {
  const isOwn = name === 'a logger' || name === 'onBegin'
  return isOwn ? (_req, _res, next) => next() : beginCall({ logger: recordingLogger() })
}
