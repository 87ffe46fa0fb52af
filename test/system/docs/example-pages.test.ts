import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { before, describe, it } from 'node:test'
import { blocksOf, curlLinesOf, ROOT, send } from '../../docs/pages.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { freePort } from '../../support/free-port.ts'
import { temporaryFolder } from '../../support/gateway-process.ts'
import { startProgram } from './running-program.ts'

const DOCUMENTED = 'http://127.0.0.1:3000'

const examples = globSync('examples/*/server.ts', { cwd: ROOT })
  .map((server) => ({
    server,
    requests: blocksOf([`${dirname(server)}/README.md`]).flatMap((block) => curlLinesOf(block, DOCUMENTED)),
  }))
  .filter(({ requests }) => requests.length > 0)

describe('the servers of the examples', { concurrency: 3 }, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  const cleanUp = cleaningUp()
  before(async () => {
    folder = await temporaryFolder()
    cleanUp.after(() => folder.remove())
  })

  it('are found', () => assert.ok(examples.length >= 4))

  for (const { server, requests } of examples) {
    it(`${server} answers as its page says`, async (t) => {
      const port = await freePort()
      const running = await startProgram(join(ROOT, server), {
        port,
        cwd: folder.path,
        env: { PORT: String(port), ADMIN_TOKEN: 'change-me' },
      })
      t.after(() => running.stop())
      for (const request of requests) await send(request, DOCUMENTED, `http://127.0.0.1:${port}`)
    })
  }
})
