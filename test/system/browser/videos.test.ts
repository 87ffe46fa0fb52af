import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { NOT_KNOWN } from '../../../lib/core/usage/index.ts'
import { openDatabase, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { charge } from '../../contracts/ledger-money.ts'
import { jsonOf } from '../../support/answer-bodies.ts'
import { until } from '../../support/until.ts'
import { startVideoUpstream } from '../../support/video-upstream.ts'
import { startFileGateway } from '../gateway/file-gateway.ts'
import { assertShows, detailOf, openConsole, signIn, startBrowser, WITHOUT_CHROMIUM } from './browser.ts'

describe('videos in the console', { skip: WITHOUT_CHROMIUM }, () => {
  it('that were charged in a time without calls are in the sums of that time', async (t) => {
    const server = await startFileGateway(t)
    const db = await openDatabase(String(server.env.DATABASE_URL))
    t.after(() => db.destroy())
    const usage = { ...NOT_KNOWN, model: 'clip', requests: 0, seconds: 8 }
    await new SqlLedger(db).settle([charge('demo', 800_000_000n, { at: Date.UTC(2026, 0, 2), usage })])
    const browser = await startBrowser()
    t.after(() => browser.close())
    const tab = await openConsole(browser, server.gateway.url)
    const { page, go } = tab
    await signIn(tab, String(server.env.ADMIN_TOKEN))
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await go('/?period=custom&from=2026-01-01&to=2026-01-03')
    await assertShows(detailOf(page, 'Charged'), '$0.80')
    await assertShows(detailOf(page, 'Refused'), /0 % of all/)
    await go('/reports?group_by=model&from=2026-01-01T00:00&to=2026-01-03T00:00')
    await assertShows(page.getByRole('row').last(), /Total.*\$0\.80/s)
    await tab.close()
  })

  it('that hang are charged or released by an operator, once', async (t) => {
    const upstream = await startVideoUpstream()
    t.after(() => upstream.close())
    const server = await startFileGateway(t)
    const { gateway, config } = server
    const line = { ...config.lines[0], id: 'videos', baseUrl: `${upstream.url}/v1`, models: { clip: 'u' } }
    await server.write({
      ...config,
      models: [...config.models, { id: 'clip', kind: 'video', price: { perSecond: '0.1' } }],
      lines: [...config.lines, line],
    })
    await until(() => gateway.stdout.includes('"msg":"config reloaded"'), 'the reload')
    const create = async (): Promise<string> => {
      const response = await fetch(`${gateway.url}/v1/videos`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk-demo', 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'clip', prompt: 'waves', seconds: '4' }),
      })
      assert.equal(response.status, 200)
      return (await jsonOf<{ id: string }>(response)).id
    }
    const [one, other] = [await create(), await create()]
    const browser = await startBrowser()
    t.after(() => browser.close())
    const tab = await openConsole(browser, gateway.url)
    const { page, go } = tab
    await signIn(tab, String(server.env.ADMIN_TOKEN))
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await go('/videos?state=queued')
    await assertShows(page.getByRole('row').filter({ hasText: one }), /queued.*demo.*clip.*videos.*\$0\.40/s)

    await page.getByRole('link', { name: one }).click()
    const charge = async (answer: string): Promise<void> => {
      await page.getByRole('button', { name: 'Charge' }).click()
      await page.getByRole('dialog').getByRole('button', { name: answer }).click()
    }
    await page.getByLabel('Amount in US dollars').fill('5')
    await charge('Charge it')
    await assertShows(page.getByRole('alert'), 'at most 0.4 is held')
    await page.getByLabel('Amount in US dollars').fill('0.30')
    await charge('Cancel')
    await assertShows(detailOf(page, 'State'), 'queued')
    await charge('Charge it')
    await assertShows(detailOf(page, 'Charged'), '$0.30')
    await assertShows(detailOf(page, 'State'), 'succeeded')
    assert.equal(await page.getByRole('button', { name: 'Release' }).count(), 0, 'it is over')

    await go(`/videos/${other}`)
    await page.getByRole('button', { name: 'Release' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await assertShows(detailOf(page, 'State'), 'queued')
    await page.getByRole('button', { name: 'Release' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Release it' }).click()
    await assertShows(detailOf(page, 'State'), 'failed')
    const { violations } = await server.ledger()
    assert.deepEqual(violations, [])
    const account = await server.admin('/accounts/demo')
    assert.deepEqual([account.spent, account.leased], ['0.3', '0'])
    await go('/changes')
    await assertShows(page.getByRole('row').filter({ hasText: other }), /video_task\.resolved/)
    await tab.close()
  })
})
