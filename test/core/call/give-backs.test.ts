import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import type { Response as ExpressResponse } from 'express'
import { callOf, type OpenCall, openCall } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { type AppServer, eventually, rawClient, recordingLogger, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'

const ENDING = { outcome: { status: 200, errorCode: null, finish: 'completed' }, unsent: null } as const

const logger = recordingLogger()
let app: AppServer
let handler: (call: OpenCall, res: ExpressResponse) => void
const happened: string[] = []
const note = (what: string) => () => void happened.push(what)

const cleanUp = cleaningUp()
before(async () => {
  app = await serveApp((app) => {
    app.use((req, res) => {
      handler(openCall(req, res, { logger }), res)
    })
  })
  cleanUp.after(() => app.close())
})
beforeEach(() => {
  logger.lines.length = 0
  happened.length = 0
})

/** Runs one call to its end. */
async function run(taking: (call: OpenCall) => void): Promise<OpenCall> {
  let running: OpenCall | undefined
  handler = (call, res) => {
    running = call
    taking(call)
    res.end('ok')
  }
  await (await fetch(app.url)).text()
  await eventually(() => running?.ended === true)
  return running as OpenCall
}

describe('the release of the resources of a call', () => {
  it('happens in the reverse order of acquisition', async () => {
    await run((call) => {
      for (const name of ['claim', 'slot', 'reservation']) call.onEnd(name, note(name))
    })
    assert.deepEqual(happened, ['reservation', 'slot', 'claim'])
  })

  it('goes on when one release throws or rejects, and logs its name and the call', async () => {
    const thrown = new Error('store away')
    const call = await run((call) => {
      call.onEnd('claim', note('claim'))
      call.onEnd('slot', () => {
        throw thrown
      })
      call.onEnd('lease', () => Promise.reject(thrown))
      call.onEnd('odd', () => {
        throw undefined
      })
      call.onEnd('reservation', note('reservation'))
    })
    await eventually(() => logger.lines.length === 3)
    assert.deepEqual(happened, ['reservation', 'claim'])
    assert.deepEqual(logger.lines.map(({ fields }) => fields.name).sort(), ['lease', 'odd', 'slot'])
    for (const { level, fields } of logger.lines) {
      assert.equal(level, 'error')
      assert.equal(fields.requestId, call.id)
    }
  })

  it('does not wait: a release that never settles delays no other', async () => {
    await run((call) => {
      call.onEnd('claim', note('claim'))
      call.onEnd('stuck', () => new Promise<void>(() => {}))
    })
    assert.deepEqual(happened, ['claim'])
  })

  it('receives the outcome and a call that has ended', async () => {
    let seen: unknown[] = []
    await run((call) => {
      call.onEnd('log', () => {
        seen = [call.ended, call.left, call.outcome]
      })
    })
    assert.deepEqual(seen, [true, false, { status: 200, errorCode: null, finish: 'completed' }])
  })

  it('happens at once for resources that were acquired after the end, or during the release', async () => {
    const call = await run((call) => {
      call.onEnd('outer', () => {
        happened.push('outer')
        call.onEnd('inner', note('inner'))
      })
    })
    assert.deepEqual(happened, ['outer', 'inner'])
    call.onEnd('late', note('late'))
    assert.deepEqual(happened, ['outer', 'inner', 'late'])
    call.onEnd('late and broken', () => Promise.reject(new Error('x')))
    await eventually(() => logger.lines.length === 1)
    assert.equal(logger.lines[0]?.fields.name, 'late and broken')
  })

  it('happens for a call that was opened after its response had ended, in whatever way', async () => {
    for (const end of [(res: ExpressResponse) => res.end('ok'), (res: ExpressResponse) => res.destroy()]) {
      happened.length = 0
      const late = await serveApp((app) => {
        app.use((req, res) => {
          res.once('close', () => {
            setImmediate(() => callOf(req).onEnd('slot', note('slot')))
          })
          end(res)
        })
      })
      await fetch(late.url).then(
        (res) => res.text(),
        () => 'cut',
      )
      await eventually(() => happened.length === 1, 'giving back')
      await late.close()
      assert.deepEqual(happened, ['slot'])
    }
  })
})

describe('hold', () => {
  it('keeps a call open past its response until every holder has released it', async () => {
    const releases: (() => void)[] = []
    let running: OpenCall | undefined
    handler = (call, res) => {
      running = call
      releases.push(call.hold(), call.hold())
      call.onEnd('slot', note('slot'))
      res.end('ok')
      res.on('close', note('closed'))
    }
    await (await fetch(app.url)).text()
    await eventually(() => happened.includes('closed'))
    releases[0]?.()
    releases[0]?.()
    assert.deepEqual([running?.ended, happened], [false, ['closed']])
    releases[1]?.()
    assert.deepEqual([running?.ended, happened], [true, ['closed', 'slot']])
    releases[1]?.()
    assert.deepEqual(happened, ['closed', 'slot'])
  })

  it('that is released before the response ends does not end the call early', async () => {
    await run((call) => {
      call.onEnd('slot', note('slot'))
      call.hold()()
      assert.deepEqual([call.ended, happened], [false, []])
    })
    assert.deepEqual(happened, ['slot'])
  })

  it('reports at once that the caller has left, and ends when the drain does', async () => {
    let release: (() => void) | undefined
    let running: OpenCall | undefined
    handler = (call, res) => {
      running = call
      release = call.hold()
      call.onLeave(note('left'))
      call.onEnd('slot', note('slot'))
      res.write('part')
    }
    const client = rawClient(app.port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await client.until('part')
    client.socket.destroy()
    await eventually(() => happened.length > 0)
    assert.deepEqual([happened, running?.left, running?.ended], [['left'], true, false])
    release?.()
    assert.deepEqual([happened, running?.ended], [['left', 'slot'], true])
  })
})

describe('onFail', () => {
  it('calls every listener, even if one throws or rejects, and logs those that do', async () => {
    handler = (call, res) => {
      call.onFail(() => {
        throw new Error('this one throws')
      })
      call.onFail((async () => {
        throw new Error('this one rejects')
      }) as () => void)
      call.onFail(note('failed'))
      call.fail(new GatewayError('internal_error'))
      res.status(500).end('an error')
    }
    const response = await fetch(app.url)
    assert.deepEqual([response.status, await response.text()], [500, 'an error'])
    assert.deepEqual(happened, ['failed'])
    assert.deepEqual(
      logger.lines.map(({ fields }) => String(fields.err)),
      ['Error: this one throws', 'Error: this one rejects'],
    )
  })
})

describe('onLeave', () => {
  it('is not called if the answer was whole, or after the listener was removed', async () => {
    const call = await run((call) => void call.onLeave(note('left')))
    assert.deepEqual([happened, call.left], [[], false])
    handler = (call, res) => {
      call.onLeave(note('kept'))
      const removed = note('removed')
      call.onLeave(removed)
      call.offLeave(removed)
      call.onEnd('end', note('end'))
      res.destroy()
    }
    await rawClient(app.port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n').end()
    await eventually(() => happened.includes('end'))
    assert.deepEqual(happened, ['kept', 'end'])
  })

  it('calls a listener at once if the caller has left already, and a failing listener does not affect others', async () => {
    let running: OpenCall | undefined
    handler = (call, res) => {
      running = call
      call.onLeave(() => {
        throw new Error('listener broken')
      })
      call.onLeave(note('second'))
      call.onEnd('end', note('end'))
      res.destroy()
    }
    await rawClient(app.port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n').end()
    await eventually(() => running?.ended === true)
    assert.deepEqual(happened, ['second', 'end'])
    assert.equal(logger.lines.length, 1)
    running?.onLeave(note('late'))
    assert.deepEqual(happened, ['second', 'end', 'late'])
  })
})

describe('settle', () => {
  it('returns nothing to wait for without settling work, and runs each work once, in order', async () => {
    let settled: unknown
    const call = await run((call) => {
      settled = call.settle(ENDING)
    })
    assert.equal(settled, undefined)
    call.onSettle(async () => {
      await null
      happened.push('charge')
    })
    call.onSettle(async () => void happened.push('log'))
    await Promise.all([call.settle(ENDING), call.settle(ENDING)])
    await call.settle(ENDING)
    assert.deepEqual(happened, ['charge', 'log'])
  })

  it('fails when the settling work fails, so that the answer is not finished', async () => {
    const call = await run(() => {})
    call.onSettle(() => Promise.reject(new Error('ledger away')))
    call.onSettle(async () => void happened.push('never reached'))
    await assert.rejects(async () => call.settle(ENDING), /ledger away/)
    assert.deepEqual(happened, [])
  })
})
