import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { blocksOf, curlLinesOf, send } from '../../docs/pages.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'

const DOCUMENTED = 'http://127.0.0.1:8787'
const ADMIN_TOKEN = 'change-me-0123456789'

/** Pages whose gateways have a config, and keys, of their own. */
const OF_OTHER_CONFIGS = new Set(['examples/new-provider/README.md', 'examples/deploy/regions/README.md'])

/** The requests to paste to the gateway that `npm start` runs. */
const lines = blocksOf(['README.md', 'docs/*.md', 'lib/**/*.md', 'examples/**/*.md'])
  .filter(({ language }) => language === 'sh')
  .flatMap((block) => curlLinesOf(block, DOCUMENTED))
  .filter(({ page }) => !OF_OTHER_CONFIGS.has(page))

describe('the requests to paste', () => {
  let gateway: GatewayProcess
  const cleanUp = cleaningUp()
  before(async () => {
    gateway = await startGatewayProcess({ ADMIN_TOKEN })
    cleanUp.after(() => gateway.stop())
  })

  it('are found', () => {
    const pages = new Set(lines.map(({ page }) => page))
    for (const page of ['README.md', 'docs/endpoints.md', 'docs/troubleshooting.md']) {
      assert.ok(pages.has(page), page)
    }
  })

  for (const line of lines) {
    it(`${line.page}: ${line.words.join(' ')}`.slice(0, 160), () =>
      send(line, DOCUMENTED, gateway.url, { ADMIN_TOKEN }),
    )
  }
})
