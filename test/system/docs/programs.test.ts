import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { ROOT, SLICES, send } from '../../docs/pages.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { freePort } from '../../support/free-port.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { startProgram } from './running-program.ts'
import { DEMO_GATEWAY, DOCUMENTED, programsOf } from './whole-programs.ts'

/** The environment variables that programs of the pages read. */
const ENV = { OPENAI_API_KEY: 'sk-openai', ADMIN_TOKEN: 'change-me-0123456789', LOG_LEVEL: 'silent' }

const programs = programsOf()
/** The middlewares that the pages say to mount alone. */
const ALONE = ['authenticate', 'rate-limit', 'idempotency', 'billing-guard', 'route', 'error-envelope']

describe('the whole programs of the pages', { concurrency: 3 }, () => {
  const ignored = join(ROOT, '.data')
  let folder = ''
  let gateway: GatewayProcess
  const cleanUp = cleaningUp()
  before(async () => {
    mkdirSync(ignored, { recursive: true })
    // In the repository, so that the package finds itself by its own name.
    folder = mkdtempSync(join(ignored, 'programs-'))
    cleanUp.after(() => rmSync(folder, { recursive: true, force: true }))
    gateway = await startGatewayProcess()
    cleanUp.after(() => gateway.stop())
  })

  it('have requests to paste where a reader mounts one middleware', () => {
    for (const slice of ALONE) {
      const program = programs.find(({ page }) => page === `${SLICES.get(slice)}/README.md`)
      assert.ok((program?.requests.length ?? 0) >= 2, slice)
    }
  })

  for (const [i, program] of programs.entries()) {
    it(`${program.page}:${program.line} runs, and answers as the page says`, async (t) => {
      const port = await freePort()
      const own = join(folder, String(i))
      mkdirSync(own)
      const file = join(own, 'program.ts')
      writeFileSync(
        file,
        program.code.replace(/app\.listen\(\d+/, `app.listen(${port}`).replaceAll(DEMO_GATEWAY, gateway.url),
      )
      const running = await startProgram(file, {
        port,
        cwd: own,
        env: ENV,
      })
      t.after(() => running.stop())
      // One after the other: what the page says of one may be so because of the one before.
      for (const request of program.requests) await send(request, DOCUMENTED, `http://127.0.0.1:${port}`, ENV)
    })
  }
})
