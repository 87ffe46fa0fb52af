import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { post } from '../../support/gateway-process.ts'
import { assertShows, detailOf, textOf, WITHOUT_CHROMIUM } from './browser.ts'
import { consoleSuite } from './console-gateway.ts'

describe('the calls in the console', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()

  it('a call is found by its request id; one that is not there is said to be missing', async () => {
    const id = await suite.called('chat-small')
    const { page, close } = await suite.signedIn('key')
    const search = page.getByRole('searchbox')
    await search.fill(` ${id} `)
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/console#/calls/${id}`)
    await assertShows(page.getByRole('main'), '200 completed')
    await search.fill('req_nothing')
    await page.keyboard.press('Enter')
    await assertShows(page.getByRole('alert'), 'Not found, or not available')
    await close()
  })

  it('are listed newest first, narrowed by each filter, and the address can be passed on', async () => {
    const good = await suite.called('chat-small')
    const failed = await suite.called('demo-failing')
    const refused = await suite.called('chat-small', { provider: { only: ['nobody'] } })
    const tab = await suite.signedIn('admin')
    const { page } = tab
    const ids = page.getByRole('table', { name: 'Calls' }).getByRole('rowheader')
    const listed = async (query: string): Promise<string[]> => {
      await tab.go(`/calls${query}`)
      await page.locator('[aria-busy=false]').first().waitFor()
      return ids.allInnerTexts()
    }
    const ours = (await listed('')).filter((id) => [good, failed, refused].includes(id))
    assert.deepEqual(ours, [refused, failed, good])
    assert.deepEqual((await listed('?code=no_candidate'))[0], refused)
    assert.equal((await listed('?account=demo&model=demo-failing&status=502')).at(0), failed)
    assert.deepEqual(await listed('?account=nobody'), [])
    await assertShows(page.getByRole('main'), 'No calls match.')
    assert.deepEqual(await listed('?from=2099-01-01T00:00'), [])
    assert.ok((await listed('?to=2099-01-01T00:00')).includes(good))

    await listed('')
    await page.getByLabel('Model').fill('demo-failing')
    await page.getByLabel('Status').fill('502')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.waitForURL('**/console#/calls?model=demo-failing&status=502')
    await page.locator('[aria-busy=false]').first().waitFor()
    assert.ok((await ids.allInnerTexts()).every((id) => id === failed || id < failed))
    await page.getByRole('link', { name: 'Clear' }).click()
    await assertShows(ids, good)
    await tab.go('/calls?status=999')
    await assertShows(page.getByRole('alert'), 'must be an HTTP status')
    await tab.close()
  })

  it('are narrowed by key, user, tags, line, class of status and duration, and exported as they are narrowed', async () => {
    const headers = { 'x-gateway-tags': 'team=search,env=prod' }
    const tagged = await suite.called('chat-failover', { user: '=ada' }, headers)
    const failed = await suite.called('demo-failing', { user: 'bob' }, { 'x-gateway-tags': 'team=search' })
    const { page, go, close } = await suite.signedIn('admin')
    const ids = page.getByRole('table', { name: 'Calls' }).getByRole('rowheader')
    const listed = async (query: string): Promise<string[]> => {
      await go(`/calls?${query}`)
      await page.locator('[aria-busy=false]').first().waitFor()
      return (await ids.allInnerTexts()).filter((id) => id === tagged || id === failed)
    }
    assert.deepEqual(await listed('key=key_demo'), [failed, tagged])
    assert.deepEqual(await listed('key=key_other'), [])
    assert.deepEqual(await listed('user=bob'), [failed])
    assert.deepEqual(await listed('tag=team%3Dsearch'), [failed, tagged])
    assert.deepEqual(await listed('tag=team%3Dsearch+env%3Dprod'), [tagged])
    assert.deepEqual(await listed('tag=env%3Dtest'), [])
    assert.deepEqual(await listed('line=demo-eu&tag=team%3Dsearch'), [tagged])
    assert.deepEqual(await listed('status=5xx'), [failed])
    assert.deepEqual(await listed('min_duration_ms=600000'), [])

    await listed('tag=team%3Dsearch')
    const file = async (format: string): Promise<string> => {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: `Export ${format}` }).click(),
      ])
      return readFile(await download.path(), 'utf8')
    }
    const entries = JSON.parse(await file('JSON')) as { id: string }[]
    assert.deepEqual(
      entries.map(({ id }) => id),
      [failed, tagged],
    )
    const csv = (await file('CSV')).split('\r\n')
    assert.equal(csv.length, 4, 'a heading, two calls, and the end of the last line')
    assert.match(String(csv[0]), /^id,.*usage\.input_tokens.*billing\.charged/)
    assert.ok(csv[2]?.startsWith(tagged) && csv[2].includes(",'=ada,"), 'a formula is text')
    await go(`/calls/${tagged}`)
    await assertShows(detailOf(page, 'Tags'), 'env=prod team=search')
    await detailOf(page, 'Account').getByRole('link', { name: 'demo' }).click()
    await page.waitForURL('**/accounts/demo')
    await page.getByRole('link', { name: 'Calls', exact: true }).last().click()
    await page.waitForURL('**/calls?account=demo')
    await go(`/calls/${tagged}`)
    await detailOf(page, 'Key').getByRole('link', { name: 'key_demo' }).click()
    await page.getByRole('main').getByRole('link', { name: 'Calls' }).click()
    await page.waitForURL('**/calls?key=key_demo')
    await close()
  })

  it('are paged', async () => {
    for (let i = 0; i < 51; i++) await (await post(suite.url, { model: 'nothing' })).arrayBuffer()
    await suite.called('chat-small')
    const { page, go, close } = await suite.signedIn('admin')
    await go('/calls')
    const first = page.getByRole('rowheader').first()
    await first.waitFor()
    const newest = await textOf(first)
    await page.getByRole('button', { name: 'Next page' }).click()
    await assertShows(page.getByRole('navigation', { name: 'Pages of calls' }), 'Page 2')
    assert.ok((await textOf(first)) < newest)
    await page.getByRole('button', { name: 'First page' }).click()
    await assertShows(first, newest)
    await close()
  })

  it('come in live until that is paused, and looking leaves no calls', async () => {
    const { page, go, close } = await suite.signedIn('key')
    await go('/calls?model=chat-small')
    await page.getByRole('button', { name: 'Go live' }).click()
    await assertShows(page.locator('.live-state'), 'Live, every 2 s')
    const first = await suite.called('chat-small')
    await assertShows(page.getByRole('rowheader').first(), first)
    await page.getByRole('rowheader').first().getByRole('link').focus()
    const second = await suite.called('chat-small')
    await assertShows(page.getByRole('rowheader').first(), second)
    assert.equal(await page.evaluate<string>('document.activeElement.textContent'), first, 'the focus stays')

    await page.getByRole('button', { name: 'Pause' }).click()
    await assertShows(page.locator('.live-state'), 'Paused')
    let requests = 0
    page.on('request', () => requests++)
    const third = await suite.called('chat-small')
    await page.waitForTimeout(2500)
    assert.equal(requests, 0)
    assert.equal(await textOf(page.getByRole('rowheader').first()), second)

    await go('/calls?model=chat-small&status=200')
    await assertShows(page.getByRole('rowheader').first(), third)
    await go('/calls')
    await page.locator('[aria-busy=false]').first().waitFor()
    const lists = page.getByRole('cell').getByText('GET /v1/calls', { exact: true })
    assert.equal(await lists.count(), 0)
    await close()
  })
})
