import { z } from 'zod'
import { pageMembers } from '../../core/list-page/index.ts'

/** The query of the lists that have no filters. */
export const pageQuery = z.object(pageMembers())
