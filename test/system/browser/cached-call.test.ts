import { test } from 'node:test'
import { assembledGateway } from '../../support/assembled-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import {
  assertShows,
  detailOf,
  openConsole,
  sectionOf,
  signIn,
  startBrowser,
  WITHOUT_CHROMIUM,
} from './browser.ts'

test('the page of a call from the cache leads to the call that got the answer', {
  skip: WITHOUT_CHROMIUM,
}, async (t) => {
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const { url, send, entryOf } = await assembledGateway(t, {
    models: [{ id: 'chat', kind: 'chat', cache: { ttlSeconds: 60, hitPrice: '0.5' } }],
    lines: [
      { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { chat: 'u' } },
    ],
  })
  const ask = async () => {
    const body = { model: 'chat', messages: [{ role: 'user', content: 'hi' }] }
    const response = await send('/v1/chat/completions', body)
    await response.arrayBuffer()
    return (await entryOf(response)).id
  }
  const [first, hit] = [await ask(), await ask()]
  const browser = await startBrowser()
  t.after(() => browser.close())
  const tab = await openConsole(browser, url)
  await signIn(tab, KEY)
  const { page, go, close } = tab
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await go(`/calls/${hit}`)
  await assertShows(page.getByRole('main'), 'it was answered from the cache')
  await assertShows(detailOf(sectionOf(page, 'Request'), 'Cache'), 'hit')
  await assertShows(detailOf(sectionOf(page, 'Billing'), 'Charged'), '$0.50')
  await detailOf(sectionOf(page, 'Request'), 'Cached from').getByRole('link').click()
  await page.waitForURL(`**/calls/${first}`)
  await assertShows(detailOf(sectionOf(page, 'Request'), 'Cache'), 'miss')
  await close()
})
