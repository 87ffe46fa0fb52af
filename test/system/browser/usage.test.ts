import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import {
  assertShows,
  detailOf,
  openConsole,
  sectionOf,
  settled,
  signIn,
  WITHOUT_CHROMIUM,
} from './browser.ts'
import { consoleSuite } from './console-gateway.ts'

interface Usage {
  readonly requests: number
  readonly failed: number
  readonly refused: number
  readonly charged: string
}

describe('usage in the console', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()
  const usageOf = async (query: string): Promise<Usage> => {
    const { data } = await suite.admin<{ data: Usage[] }>('GET', `/usage?${query}`)
    return data[0] ?? assert.fail(`no usage for ${query}`)
  }
  /** A tenant beside, with a key and two calls. */
  const tenant = async (account: string): Promise<string> => {
    await suite.admin('POST', '/accounts', { id: account, prepaid: false })
    const { secret } = await suite.admin<{ secret: string }>('POST', '/keys', { account })
    for (const model of ['chat-small', 'demo-failing'])
      await suite.called(model, {}, { authorization: `Bearer ${secret}` })
    return secret
  }

  it('is on the overview, from usage and never from a page of calls', async () => {
    await suite.called('chat-small', { user: 'ada' })
    await suite.called('chat-small', { user: 'ada' })
    const secret = await tenant('beside')
    const operator = await suite.signedIn('admin')
    const asked: string[] = []
    operator.page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    const { page } = operator
    await operator.go('/?period=7d')
    await settled(page)
    const all = await usageOf('')
    await assertShows(detailOf(page, 'Requests'), String(all.requests))
    await assertShows(detailOf(page, 'Failed'), String(all.failed))
    assert.ok(asked.includes('/admin/usage') && !asked.some((path) => path.includes('/calls')))
    for (const group of ['model', 'line', 'account', 'key'])
      await assertShows(sectionOf(page, `By ${group}`), `All by ${group}`)
    await sectionOf(page, 'By account').getByRole('link', { name: 'beside' }).click()
    await page.getByRole('heading', { name: 'beside' }).waitFor()
    await assertShows(detailOf(page, 'Requests'), /^2$/)
    await detailOf(page, 'Failed').getByRole('link').click()
    await assertShows(page.getByRole('row'), /demo-failing/)
    assert.equal(await page.getByRole('row').count(), 2, 'the heading and the call that failed')
    await operator.close()

    const holder = await openConsole(suite.browser, suite.url)
    await signIn(holder, secret)
    await assertShows(detailOf(holder.page, 'Requests'), /^2$/)
    await assertShows(sectionOf(holder.page, 'By model'), 'chat-small')
    assert.doesNotMatch(
      (await holder.page.getByRole('main').textContent()) ?? '',
      /cost|beside|demo-us|key_demo/i,
    )
    await holder.close()
  })

  it('is drawn over periods that the address keeps; arrow keys show its values, and a table has them', async () => {
    await suite.called('chat-small')
    const { page, close } = await suite.signedIn('admin')
    const chart = page.locator('figure').filter({ hasText: 'Requests over time' })
    const slider = chart.getByRole('slider', { name: 'Requests over time' })
    await slider.locator('canvas').waitFor()
    await slider.focus()
    await page.keyboard.press('End')
    const last = String(await slider.getAttribute('aria-valuetext'))
    assert.match(last, /: answered \d+, refused \d+, failed \d+$/)
    await assertShows(chart.locator('figcaption'), /answered \d+/)
    await page.keyboard.press('ArrowLeft')
    assert.notEqual(await slider.getAttribute('aria-valuetext'), last)
    assert.equal(await slider.getAttribute('aria-valuenow'), '22')
    await chart.getByText('As a table').click()
    const [, answered] = /answered (\d+)/.exec(last) ?? []
    await assertShows(chart.getByRole('table').getByRole('row').last(), String(answered))

    await page.getByRole('button', { name: '30 days' }).click()
    await page.waitForURL('**/console#/?period=30d')
    await page.reload()
    await slider.waitFor()
    assert.equal(await slider.getAttribute('aria-valuemax'), '29')
    await page.getByRole('button', { name: 'custom' }).click()
    await page.getByLabel('From').fill('2020-01-31')
    await page.getByLabel('To').fill('2020-01-01')
    await page.getByRole('button', { name: 'Show' }).click()
    await assertShows(page.getByRole('alert'), 'must not be behind')
    await page.getByLabel('To').fill('2020-02-01')
    await page.getByRole('button', { name: 'Show' }).click()
    await assertShows(page.getByRole('main'), 'No calls in this time.')
    await page.waitForURL('**/console#/?period=custom&from=2020-01-31&to=2020-02-01')
    await close()
  })

  it('is reported by groups with a total, and exported as the API gives it', async () => {
    const secret = await tenant('reported')
    await suite.called('chat-small', { user: 'ada' }, { authorization: `Bearer ${secret}` })
    const { page, go, close } = await suite.signedIn('admin')
    await go('/reports')
    await page.getByLabel('Account', { exact: true }).fill('reported')
    await page.getByLabel('Time').selectOption('none')
    await page.getByRole('checkbox', { name: 'model' }).check()
    await page.getByRole('checkbox', { name: 'user' }).check()
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.waitForURL('**/console#/reports?account=reported&group_by=model%2Cuser')
    await settled(page)
    const rows = page.getByRole('table', { name: 'Usage' }).getByRole('row')
    await assertShows(rows.last(), /^Total.*3/s)
    assert.equal(await rows.count(), 5, 'the heading, three groups, the total')
    await assertShows(rows, /chat-small.*ada.*1/s)
    const { charged } = await usageOf('account=reported')
    await assertShows(rows.last(), `$${charged}`)
    for (const format of ['CSV', 'JSON']) {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: `Export ${format}` }).click(),
      ])
      const text = await readFile(await download.path(), 'utf8')
      assert.match(text, /chat-small/)
      assert.doesNotMatch(text, /key_demo/)
      if (format === 'CSV') assert.equal(text.trim().split(/\r?\n/).length, 4)
      else assert.equal((JSON.parse(text) as object[]).length, 3)
    }
    await rows.getByRole('link', { name: 'ada' }).click()
    await page.waitForURL(/#\/calls\?user=ada&from=/)
    await close()
  })

  it('is exported with a column for each group, whatever the names of tags', async () => {
    const secret = await tenant('tagged')
    await suite.called(
      'chat-small',
      {},
      { authorization: `Bearer ${secret}`, 'x-gateway-tags': 'org=ours,org.team=search' },
    )
    const { page, go, close } = await suite.signedIn('admin')
    await go('/reports?account=tagged&group_by=tag%3Aorg%2Ctag%3Aorg.team')
    await settled(page)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ])
    const [names, ...rows] = (await readFile(await download.path(), 'utf8')).split('\r\n')
    assert.match(String(names), /^tag:org,tag:org\.team,requests,/)
    assert.ok(
      rows.some((row) => row.startsWith('ours,search,1,')),
      rows.join('\n'),
    )
    await close()
  })

  it('says so where there is none', async () => {
    await suite.admin('POST', '/accounts', { id: 'quiet' })
    const { secret } = await suite.admin<{ secret: string }>('POST', '/keys', { account: 'quiet' })
    const tab = await openConsole(suite.browser, suite.url)
    await signIn(tab, secret)
    await assertShows(tab.page.getByRole('main'), 'No calls in this time.')
    await tab.go('/reports')
    await assertShows(tab.page.getByRole('main'), 'No calls in this time.')
    await tab.close()
  })
})
