import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { it } from 'node:test'
import express from 'express'
import {
  cutStalledCallers,
  serverRefusals,
  upgradeHandler,
} from '../../../lib/middleware/begin-call/index.ts'

const app = express()
const server = createServer(app)

/** Mistakes in setting up a server that would do nothing, or end the process at the first request. */
const MISTAKES: readonly [what: string, make: () => unknown, told: RegExp][] = [
  [
    'an upgradeHandler without an app',
    () => upgradeHandler(undefined as never),
    /^upgradeHandler: it needs an app/,
  ],
  [
    'an upgradeHandler of a server',
    () => upgradeHandler(server as never),
    /^upgradeHandler: it needs an app/,
  ],
  [
    'serverRefusals without an app',
    () => serverRefusals(undefined as never, app),
    /^serverRefusals: it needs an app/,
  ],
  [
    'serverRefusals without a second chain',
    () => serverRefusals(app, undefined as never),
    /^serverRefusals: it needs an app/,
  ],
  [
    'cutStalledCallers of an app',
    () => cutStalledCallers(app as never),
    /^cutStalledCallers: it needs the server/,
  ],
  [
    'cutStalledCallers without a server',
    () => cutStalledCallers(undefined as never),
    /^cutStalledCallers: it needs the server/,
  ],
  [
    'cutStalledCallers with an option that there is not',
    () => cutStalledCallers(server, { after: 5 } as never),
    /there is no option "after"; did you mean "afterMs"\?/,
  ],
]

for (const [what, make, told] of MISTAKES)
  it(`${what} is refused when it is made, in one line`, () => {
    assert.throws(make, (error: Error) => {
      assert.ok(error instanceof TypeError)
      assert.match(error.message, told)
      assert.doesNotMatch(error.message, /\n/)
      return true
    })
  })
