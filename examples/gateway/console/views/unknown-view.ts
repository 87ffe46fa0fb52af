import { h } from '../element.ts'
import { linkTo } from '../router.ts'
import type { Shown } from '../visit.ts'

export function unknownView(): Shown {
  return {
    title: 'Nothing here',
    content: h('p', {}, 'The console has no such view. ', h('a', { href: linkTo('') }, 'Find a call')),
  }
}
